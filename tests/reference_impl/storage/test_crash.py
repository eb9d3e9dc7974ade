"""The power fails at every operation of a small run, and in the middle of every write: a prefix is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_impl.core.broker.topics import HALF_TOPIC, OP_TOPIC
from reference_impl.storage import DiskStore, StoreOptions
from reference_impl.storage.simulated_disk import (
    Keep,
    KeepDrawn,
    KeepLast,
    KeepNothing,
    KeepPart,
    PowerLost,
    SimulatedDisk,
)
from specs.vocabulary import SCHEDULE_TOPIC
from tests.reference_impl.storage.runs import ASYNC, SYNC, TOPIC, Run, contents, log_of

Work = Callable[[Run], None]


COMMIT, ROLLBACK = 8, 12
HALVES = {"kept": COMMIT, "dropped": ROLLBACK, "open": 0}
"""Half messages, and how their transactions end."""


def small_run(run: Run) -> None:
    """A store is made, used over several segments, closed and opened again."""
    for turn in range(2):
        store = run.start()
        for number in range(4):
            run.send(number % 2, f"{turn}{number}".encode() + b"x" * 40 * number)
            if number % 2:
                run.flush()
        run.send_batch(0, [f"{turn}batch{part}".encode() for part in range(3)])
        run.flush()
        run.send(1, f"{turn}later".encode(), level=1)
        for name in HALVES:
            run.send_half(1, f"{turn}{name}".encode())
        run.flush()
        for name, state in HALVES.items():
            if state:
                run.end_half(f"{turn}{name}".encode(), state)
        run.make_topic(f"topic{turn}")
        run.make_group(f"group{turn}")
        run.flush()
        run.commit(turn * 3 + 2)
        run.pass_ms(1_500)
        store.close()


def whole_log(work: Work, options: StoreOptions) -> tuple[list[tuple[str, int, int, bytes]], int]:
    """What the run stores when nothing happens to it, and how many operations that takes."""
    disk = SimulatedDisk()
    work(Run(disk, options))
    return log_of(DiskStore.open(disk.copy(), options)), disk.operations


def crashed(work: Work, options: StoreOptions, power: int) -> Run:
    run = Run(SimulatedDisk(power=power), options)
    with suppress(PowerLost):
        work(run)
    return run


def keeps(last_write: int, seed: int, step: int) -> Iterator[Keep]:
    """What may be left of the unsynced: nothing, all, the last write only, its first bytes up to any, anything."""
    yield KeepNothing()
    yield Keep()
    yield KeepLast()
    for split in range(1 + seed % step, last_write, step):
        yield KeepPart(split)
    yield from (
        KeepPart(split, is_tail=True) for split in range(1 + seed % step, last_write, 7 * step)
    )
    yield from (KeepDrawn(Random(f"{seed} {number}")) for number in range(4))


def check_recovery(run: Run, keep: Keep, whole: list[tuple[str, int, int, bytes]]) -> None:
    """The log is a prefix of the whole one, and holds all that was acknowledged as safe."""
    disk = run.disk.after_power_loss(keep)
    store = DiskStore.open(disk, run.options)
    found = log_of(store)
    assert found == whole[: len(found)]
    if run.options is SYNC:
        stored = {
            (queue_id, offset, body) for topic, queue_id, offset, body in found if topic == TOPIC
        }
        assert set(run.acknowledged) <= stored
        assert set(run.made) <= store.topics.keys() | store.groups.keys()
    bodies = [body for topic, _, _, body in found if topic == TOPIC]
    for batch in run.batches:
        assert sum(body in bodies for body in batch) in (0, len(batch))
    check_halves(run, store, found)
    committed = [0, *run.committed]
    known = store.offsets.get((TOPIC, "billing"), {}).get(0, 0)  # type: ignore[call-overload]
    assert known in committed
    assert known <= store.queue(TOPIC, 0).max_offset
    store.abandon()
    again = DiskStore.open(disk, run.options)
    assert log_of(again) == found


def check_halves(run: Run, store: DiskStore, found: list[tuple[str, int, int, bytes]]) -> None:
    """What the log says of each half message, and the store of those that are open, is one and the same."""
    halves = {offset: body for topic, _, offset, body in found if topic == HALF_TOPIC}
    released = [body for topic, _, _, body in found if topic == TOPIC]
    noted = {halves[int(body)] for topic, _, _, body in found if topic == OP_TOPIC}
    is_open = {halves[offset] for offset in store.open_halves}
    for body in halves.values():
        assert released.count(body) <= (
            0 if body.endswith(b"dropped") or body.endswith(b"open") else 1
        )
        assert (body in is_open) == (body not in released and body not in noted)
    if run.options is SYNC:
        assert set(run.halves) <= set(halves.values())
        for body, state in run.ended.items():
            assert body not in is_open
            assert (body in released) == (state == COMMIT)


def check_next_life(run: Run, keep: Keep) -> None:
    """The next broker finishes what was begun: each delayed and each committed half message is there exactly once.

    Its producers say once more how their transactions ended, as they do who got no answer.
    """
    life = Run(run.disk.after_power_loss(keep), run.options, run.now_ms, halves=dict(run.halves))
    life.start()
    life.flush()
    known = {half.body for half in life.store.queue(HALF_TOPIC, 0).messages}
    life.halves = {body: answer for body, answer in life.halves.items() if body in known}
    for body in list(life.halves):
        life.end_half(body, HALVES[body[1:].decode()])
    life.pass_ms(3_000)
    there = [
        body for key, items in contents(life.store).items() if key[0] == TOPIC for _, body in items
    ]
    assert sorted(there) == sorted(set(there))
    wanted = [body for body in life.halves if HALVES[body[1:].decode()] == COMMIT]
    wanted += [waiting.body for waiting in life.store.queue(SCHEDULE_TOPIC, 0).messages]
    assert set(wanted) <= set(there)
    assert not {body for body in there if body.endswith((b"dropped", b"open"))}
    if run.options is SYNC:
        assert {*run.delayed, *(body for _, _, body in run.acknowledged)} <= set(there)
        assert set(run.halves) <= known
        for _, _, body in run.acknowledged[-3:]:
            assert life.find(body.decode()[:20]) == [body]


MODES = pytest.mark.parametrize("options", [SYNC, ASYNC], ids=["sync", "async"])


def crash_everywhere(options: StoreOptions, step: int) -> int:
    """How many crashes were recovered from; step: of the bytes of a write, every how manieth.

    With more than 1 the next broker goes on from every eighth crash only.
    """
    whole, operations = whole_log(small_run, options)
    # two turns of 4, a batch of 3, a delayed one and its release, three halves, one of them released, and two notes
    assert len(whole) == 30
    tried = 0
    for power in range(operations):
        run = crashed(small_run, options, power)
        for keep in keeps(run.disk.last_write, power, step):
            check_recovery(run, keep, whole)
            tried += 1
        if step == 1 or power % 8 == 0:
            check_next_life(run, KeepNothing())
            check_next_life(run, KeepDrawn(Random(f"next {power}")))
    return tried


@pytest.mark.parametrize(
    "options", [SYNC, pytest.param(ASYNC, marks=pytest.mark.long)], ids=["sync", "async"]
)
def test_the_power_fails_at_every_operation(options: StoreOptions) -> None:
    """Every boundary between two operations, and some bytes of every write, each time from another one on.

    The other way of flushing is in the long tests; drawn work and drawn crashes are of both.
    """
    assert crash_everywhere(options, 293) > 500


@pytest.mark.long
@MODES
def test_the_power_fails_at_every_byte(options: StoreOptions) -> None:
    assert crash_everywhere(options, 1) > 30_000


def crash_while_recovering(step: int) -> int:
    """How many recoveries were cut short. step: of the crashes of the run itself, every how manieth."""
    operations, tried = whole_log(small_run, SYNC)[1], 0
    for power in range(3, operations, step):
        run = crashed(small_run, SYNC, power)
        after = run.disk.after_power_loss(KeepDrawn(Random(power)))
        first = after.copy()
        expected = DiskStore.open(first, SYNC)
        for again in range(first.operations):
            disk = after.copy()
            disk.power = again
            with suppress(PowerLost):
                DiskStore.open(disk, SYNC)
            store = DiskStore.open(disk.after_power_loss(KeepDrawn(Random(again))), SYNC)
            assert log_of(store) == log_of(expected)
            assert (store.open_halves, store.delayed_done) == (
                expected.open_halves,
                expected.delayed_done,
            )
            assert (store.topics, store.groups, store.offsets) == (
                expected.topics,
                expected.groups,
                expected.offsets,
            )
            tried += 1
    return tried


def test_the_power_fails_while_the_store_recovers() -> None:
    """And again at every operation of that: what is there in the end is what the first recovery would have found."""
    assert crash_while_recovering(29) > 100


@pytest.mark.long
def test_the_power_fails_at_every_operation_of_every_recovery() -> None:
    assert crash_while_recovering(1) > 3_000


def test_async_flush_loses_at_most_what_came_since_the_last_flush() -> None:
    run = Run(SimulatedDisk(), ASYNC)
    run.start()
    for number in range(20):
        run.send(0, f"m{number:02}".encode())
        run.pass_ms(100)
        if number == 13:
            safe = [
                (0, offset, body) for _, offset, body in run.acknowledged[:10]
            ]  # acknowledged 500 ms ago or more
            found = DiskStore.open(run.disk.after_power_loss(KeepNothing()), ASYNC)
            assert len(safe) <= len(log_of(found)) < len(run.acknowledged)


SENDS = st.tuples(
    st.just("send"), st.integers(0, 1), st.integers(0, 300), st.sampled_from([0, 0, 0, 1, 2])
)
BATCHES = st.tuples(st.just("batch"), st.integers(0, 1), st.integers(1, 4))
OTHER = st.sampled_from(
    [("flush",), ("pass", 300), ("pass", 1_100), ("commit", 1), ("commit", 3), ("reopen",)]
)


def drawn_work(steps: list[tuple[object, ...]]) -> Work:
    def work(run: Run) -> None:
        store = run.start()
        for number, step in enumerate(steps):
            match step:
                case ("send", int(queue_id), int(size), int(level)):
                    run.send(queue_id, f"m{number}".encode() + b"x" * size, level=level)
                case ("batch", int(queue_id), int(count)):
                    run.send_batch(
                        queue_id, [f"m{number}/{part}".encode() for part in range(count)]
                    )
                case ("flush",):
                    run.flush()
                case ("pass", int(duration_ms)):
                    run.pass_ms(duration_ms)
                case ("commit", int(offset)):
                    run.commit(min(offset, run.store.queue(TOPIC, 0).max_offset))
                case _:
                    store.close()
                    store = run.start()
        store.close()

    return work


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_work_any_crash(data: st.DataObject) -> None:
    steps = data.draw(st.lists(st.one_of(SENDS, BATCHES, OTHER), max_size=25))
    options = data.draw(st.sampled_from([SYNC, ASYNC]))
    work = drawn_work(steps)
    whole, operations = whole_log(work, options)
    run = crashed(work, options, data.draw(st.integers(0, operations)))
    for seed in range(3):
        check_recovery(run, KeepDrawn(Random(seed)), whole)
