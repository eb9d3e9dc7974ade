"""What a start makes of what it finds: a torn tail is cut and said, damage is refused, a queue is derived again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reference_impl.core.broker.log import Draft
from reference_impl.protocol.codes import RequestCode
from reference_impl.protocol.headers import PULL_SUBSCRIPTION, PullHeader
from reference_impl.protocol.message import decode_all
from reference_impl.storage import DiskStore, FlushMode, StoreDamaged, StoreInUse, StoreOptions
from reference_impl.storage.layout import ABORT, META, OFFSETS, queue_path, segment_path
from reference_impl.storage.simulated_disk import KeepNothing, SimulatedDisk
from tests.reference_impl.storage.runs import ASYNC, GROUP, SYNC, TOPIC, Run, contents, log_of

NEVER = replace(ASYNC, flush_ms=10_000_000)
SEGMENT = segment_path(0)


def draft(body: bytes = b"m", queue_id: int = 0, topic: str = TOPIC) -> Draft:
    return Draft(topic, queue_id, body, {"UNIQ_KEY": "k", "TAGS": "t"})


def stored(
    disk: SimulatedDisk, *bodies: bytes, options: StoreOptions = ASYNC, close: bool = True
) -> DiskStore:
    """A store with these messages in one queue, ended in good order if `close`."""
    store = DiskStore.open(disk, options)
    for body in bodies:
        store.append(draft(body), 1_000, "127.0.0.1:1")
    if close:
        store.close()
    return store


def bodies(store: DiskStore) -> list[bytes]:
    return [body for _, _, _, body in log_of(store)]


def flip(disk: SimulatedDisk, path: str, at: int) -> None:
    data = bytearray(disk.content(path))
    data[at] ^= 1
    disk.put(path, bytes(data))


def test_a_closed_store_is_found_as_it_was() -> None:
    disk = SimulatedDisk()
    stored(disk, *[b"x" * 200] * 9, b"last")
    again = DiskStore.open(disk)
    assert bodies(again) == [b"x" * 200] * 9 + [b"last"]
    assert again.said == []
    segments = [name for name in disk.paths() if name.startswith("commitlog/")]
    assert segments == [segment_path(number * 1024) for number in range(4)]


def test_the_size_of_a_stores_files_is_its_own() -> None:
    disk = SimulatedDisk()
    stored(disk, b"a")
    store = stored(disk, *[b"x" * 200] * 9, options=StoreOptions())
    assert bodies(DiskStore.open(disk, StoreOptions())) == [b"a", *[b"x" * 200] * 9]
    assert store.end > 1024


def test_a_torn_tail_is_cut_and_said() -> None:
    """One line: the segment, the place, what lay there, how many bytes were cut."""
    disk = SimulatedDisk()
    store = stored(disk, b"a", b"b", close=False)
    end, places = store.end, list(store.queue(TOPIC, 0).places)  # type: ignore[attr-defined]
    store.abandon()
    flip(disk, SEGMENT, end - 3)
    again = DiskStore.open(disk)
    assert bodies(again) == [b"a"]
    place = places[1]
    assert again.said == [
        f"torn tail cut: segment {0:020d} at {place} (offset {place} of the log) has a record that does not match its "
        f"check sum; {end - place} bytes behind it",
        "the last broker did not end in good order; 1 messages are there",
    ]


def test_a_batch_of_which_only_the_first_messages_are_there_is_cut_and_said() -> None:
    """Nobody was told that it is stored; what came before it stays, and its place is given again."""
    run = Run(SimulatedDisk(), NEVER)
    run.start()
    run.send(0, b"before")
    before = run.store.end
    run.send_batch(0, [b"one", b"two", b"three"])
    last = run.store.queue(TOPIC, 0).messages[-1].physical_offset
    run.store.abandon()
    disk = run.disk.copy()
    data = bytearray(disk.content(SEGMENT))
    data[last:] = bytes(len(data) - last)
    disk.put(SEGMENT, bytes(data))
    again = DiskStore.open(disk, ASYNC)
    assert bodies(again) == [b"before"]
    assert again.said[0].startswith(f"torn tail cut: segment 00000000000000000000 at {before} ")
    assert "has 2 messages of a batch, without the other 1; " in again.said[0]
    assert again.append(draft(b"next"), 1_000, "127.0.0.1:1").queue_offset == 1


def test_what_was_cut_never_comes_back() -> None:
    """Behind the fault a whole record lies, and the next message fills the gap to it exactly."""
    disk = SimulatedDisk()
    store = stored(disk, b"a", b"b", b"c", close=False)
    second = store.queue(TOPIC, 0).places[1]  # type: ignore[attr-defined]
    store.abandon()
    flip(disk, SEGMENT, second + 90)
    assert bodies(stored(disk, b"n", close=False)) == [b"a", b"n"]
    assert bodies(DiskStore.open(disk.after_power_loss(KeepNothing()))) == [b"a"]
    assert bodies(DiskStore.open(disk.copy())) == [b"a", b"n"]


def test_what_a_start_found_is_safe_from_then_on() -> None:
    """The process was killed, so everything is there; then the power fails."""
    disk = SimulatedDisk()
    stored(disk, b"a", b"b", options=NEVER, close=False).abandon()
    assert bodies(DiskStore.open(disk)) == [b"a", b"b"]
    assert bodies(DiskStore.open(disk.after_power_loss(KeepNothing()))) == [b"a", b"b"]


@pytest.mark.parametrize("at", [0, 4, 8, 30, 100, 130])
def test_a_fault_in_what_was_synced_is_refused_and_nothing_is_changed(at: int) -> None:
    """Magic, length, CRC, place, properties: no crash does that."""
    disk = SimulatedDisk()
    stored(disk, b"a", b"b" * 30)
    flip(disk, SEGMENT, at)
    before = {path: disk.content(path) for path in disk.paths()}
    with pytest.raises(
        StoreDamaged, match=r"segment 0{20} at 0 \(offset 0 of the log\) has .*--cut-damage"
    ):
        DiskStore.open(disk)
    assert {path: disk.content(path) for path in disk.paths()} == before


def test_damage_is_cut_when_the_user_says_so() -> None:
    disk = SimulatedDisk()
    store = stored(disk, b"a", b"b", b"c")
    flip(disk, SEGMENT, store.queue(TOPIC, 0).places[1] + 5)  # type: ignore[attr-defined]
    again = DiskStore.open(disk, StoreOptions(cut_damage=True))
    assert bodies(again) == [b"a"]
    assert "damage cut, as was asked for" in again.said[0]
    again.close()
    assert bodies(DiskStore.open(disk)) == [b"a"]


def test_a_log_that_is_shorter_than_it_was_synced_is_damage() -> None:
    disk = SimulatedDisk()
    stored(disk, b"a", b"b")
    disk.put(SEGMENT, bytes(1024))
    with pytest.raises(StoreDamaged, match="though it was synced up to"):
        DiskStore.open(disk)


def test_the_checkpoint_claims_no_more_than_is_safe() -> None:
    disk = SimulatedDisk()
    store = stored(disk, b"a", options=NEVER, close=False)
    store.settle()
    assert bodies(DiskStore.open(disk.after_power_loss(KeepNothing()))) == []


def test_consumed_offsets_never_outrun_the_log() -> None:
    """Else the next messages would lie below them, and nobody would get them."""
    run = Run(SimulatedDisk(), NEVER)
    run.start()
    for number in range(3):
        run.send(0, f"m{number}".encode())
    run.commit(3)
    run.pass_ms(1_100)
    again = DiskStore.open(run.disk.after_power_loss(KeepNothing()))
    assert list(again.offsets.values()) == [{0: 3}]
    assert again.queue(TOPIC, 0).max_offset == 3


def test_a_crash_repeats_no_delayed_message_and_loses_none() -> None:
    run = Run(SimulatedDisk(), SYNC)
    run.start()
    for number in range(4):
        run.send(0, f"m{number}".encode(), level=1)
        run.pass_ms(400)
    assert [body for _, body in contents(run.store)[TOPIC, 0]] == [b"m0", b"m1"]
    run.disk = run.disk.after_power_loss(KeepNothing())
    run.start()
    run.pass_ms(3_000)
    assert [body for _, body in contents(run.store)[TOPIC, 0]] == [b"m0", b"m1", b"m2", b"m3"]


def test_a_damaged_consume_queue_is_made_again() -> None:
    disk = SimulatedDisk()
    stored(disk, b"a", b"b")
    path = queue_path(TOPIC, 0, 0)
    before = disk.content(path)
    flip(disk, path, 25)
    again = DiskStore.open(disk)
    assert bodies(again) == [b"a", b"b"]
    assert again.said == ["the consume queue orders/0 was rebuilt from the log"]
    again.close()
    assert disk.content(path) == before


def test_a_queue_whose_messages_are_gone_goes_on_at_its_offset() -> None:
    """Retention took the only segment that held them."""
    disk = SimulatedDisk()
    stored(disk, b"x" * 300, b"x" * 300)
    store = DiskStore.open(disk, ASYNC)
    for _ in range(3):
        store.append(draft(b"y" * 300, topic="other"), 1_000, "127.0.0.1:1")
    store.close()
    disk.remove(SEGMENT)
    again = DiskStore.open(disk)
    assert (again.queue(TOPIC, 0).min_offset, again.queue(TOPIC, 0).max_offset) == (2, 2)
    assert again.append(draft(), 1_000, "127.0.0.1:1").queue_offset == 2


def test_a_table_that_cannot_be_read_is_taken_from_the_one_before() -> None:
    run = Run(SimulatedDisk(), SYNC)
    store = run.start()
    for offset in (1, 2):
        run.commit(offset)
        run.pass_ms(1_000)
    store.abandon()
    run.disk.put(OFFSETS, b"{")
    again = DiskStore.open(run.disk)
    assert list(again.offsets.values()) == [{0: 1}]
    assert (
        again.said[0] == f"{OFFSETS} can't be read; {OFFSETS}.bak was taken instead, which is older"
    )


def test_a_table_without_a_second_copy_is_one_clear_sentence() -> None:
    disk = SimulatedDisk()
    stored(disk)
    for path in (META, f"{META}.bak"):
        disk.put(path, b"\xff")
    with pytest.raises(StoreDamaged, match=r"inorder\.json"):
        DiskStore.open(disk)


def test_two_cannot_open_one_store() -> None:
    disk = SimulatedDisk()
    store = DiskStore.open(disk)
    with pytest.raises(StoreInUse):
        DiskStore.open(disk)
    store.close()
    assert ABORT not in disk.paths()
    DiskStore.open(disk)


def test_a_store_without_its_abort_file_and_ours_was_closed_by_another_broker() -> None:
    """No check sums are asked for, and everything that lies there counts as synced."""
    disk = SimulatedDisk()
    stored(disk, b"a", b"b")
    for path in (META, f"{META}.bak", "checkpoint"):
        if path in disk.paths():
            disk.remove(path)
    assert bodies(DiskStore.open(disk, ASYNC)) == [b"a", b"b"]


def test_a_failed_sync_ends_the_writing() -> None:
    """The send is answered 10, stored and not known to be safe; later ones are refused."""
    run = Run(SimulatedDisk(), SYNC)
    run.start()
    run.disk.sync_fails = True
    run.send(0, b"a")
    run.flush()
    run.send(0, b"b")
    assert run.codes == [10, 14]
    assert run.store.flush is FlushMode.SYNC


def test_with_async_flush_a_failed_sync_ends_the_writing_too() -> None:
    """What was acknowledged before is shown, and nobody knows whether it is safe."""
    run = Run(SimulatedDisk(), ASYNC)
    run.start()
    run.disk.sync_fails = True
    run.send(0, b"a")
    run.pass_ms(600)
    run.send(0, b"b")
    assert run.codes == [0, 14]
    assert bodies(run.store) == [b"a"]


def test_a_sync_that_takes_too_long_is_told() -> None:
    """Code 10 after five seconds; the message lies there all the same."""
    run = Run(SimulatedDisk(), SYNC)
    run.start()
    run.send(0, b"a")
    waiting, run.flushes = run.flushes, []
    run.pass_ms(5_000)
    assert (run.codes, bodies(run.store)) == ([10], [b"a"])
    run.flushes = waiting
    run.flush()
    run.send(0, b"b")
    run.flush()
    assert run.codes == [10, 0]


def test_one_sync_is_for_all_that_came_in_together() -> None:
    run = Run(SimulatedDisk(), SYNC)
    run.start()
    for number in range(5):
        run.send(0, b"m%d" % number)
    assert (len(run.flushes), run.codes) == (1, [])
    run.flush()
    assert run.codes == [0] * 5


def test_nobody_reads_what_a_crash_could_take_back() -> None:
    """With sync flush a pull's answer waits for the sync of what it shows, as the send's does."""
    run = Run(SimulatedDisk(), SYNC)
    run.start()
    run.send(0, b"m")
    header = PullHeader(GROUP, TOPIC, 0, 0, 32, PULL_SUBSCRIPTION, subscription="*")
    opaque = run.ask(RequestCode.PULL_MESSAGE, header.to_ext())
    assert opaque not in run.answers
    run.flush()
    assert [message.body for message in decode_all(run.answers[opaque].body)] == [b"m"]
