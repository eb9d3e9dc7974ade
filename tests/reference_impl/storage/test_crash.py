"""The power fails at every operation of a small run, and in the middle of every write: a prefix is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
from tests.reference_impl.storage.runs import ASYNC, SYNC, TOPIC, Run, log_of

Work = Callable[[Run], None]


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
    yield from (KeepPart(split, is_tail=True) for split in range(1 + seed % step, last_write, 7 * step))
    yield from (KeepDrawn(Random(f"{seed} {number}")) for number in range(4))


def check_recovery(run: Run, keep: Keep, whole: list[tuple[str, int, int, bytes]]) -> None:
    """The log is a prefix of the whole one, and holds all that was acknowledged as safe."""
    disk = run.disk.after_power_loss(keep)
    store = DiskStore.open(disk, run.options)
    found = log_of(store)
    assert found == whole[: len(found)]
    if run.options is SYNC:
        stored = {(queue_id, offset, body) for topic, queue_id, offset, body in found if topic == TOPIC}
        assert set(run.acknowledged) <= stored
    committed = [0, *run.committed]
    known = store.offsets.get((TOPIC, "billing"), {}).get(0, 0)  # type: ignore[call-overload]
    assert known in committed
    assert known <= store.queue(TOPIC, 0).max_offset
    store.abandon()
    again = DiskStore.open(disk, run.options)
    assert log_of(again) == found


MODES = pytest.mark.parametrize("options", [SYNC, ASYNC], ids=["sync", "async"])


def crash_everywhere(options: StoreOptions, step: int) -> int:
    """How many crashes were recovered from; step: of the bytes of a write, every how manieth."""
    whole, operations = whole_log(small_run, options)
    assert len(whole) == 18  # two turns of 4, a batch of 3, a delayed one and its release
    tried = 0
    for power in range(operations):
        run = crashed(small_run, options, power)
        for keep in keeps(run.disk.last_write, power, step):
            check_recovery(run, keep, whole)
            tried += 1
    return tried


@MODES
def test_the_power_fails_at_every_operation(options: StoreOptions) -> None:
    """Every boundary between two operations, and every twentieth byte of a write, each time from another one on."""
    assert crash_everywhere(options, 20) > 1_000


@pytest.mark.long
@MODES
def test_the_power_fails_at_every_byte(options: StoreOptions) -> None:
    assert crash_everywhere(options, 1) > 30_000


def test_the_power_fails_while_the_store_recovers() -> None:
    """And again at every operation of that: what is there in the end is what the first recovery would have found."""
    operations = whole_log(small_run, SYNC)[1]
    for power in range(3, operations, 17):
        after = crashed(small_run, SYNC, power).disk.after_power_loss(KeepDrawn(Random(power)))
        expected = log_of(DiskStore.open(after.copy(), SYNC))
        for again in range(30):
            disk = after.copy()
            disk.power = again
            with suppress(PowerLost):
                DiskStore.open(disk, SYNC)
            assert log_of(DiskStore.open(disk.after_power_loss(KeepDrawn(Random(again))), SYNC)) == expected


def test_async_flush_loses_at_most_what_came_since_the_last_flush() -> None:
    run = Run(SimulatedDisk(), ASYNC)
    run.start()
    for number in range(20):
        run.send(0, f"m{number:02}".encode())
        run.pass_ms(100)
        if number == 13:
            safe = [(0, offset, body) for _, offset, body in run.acknowledged[:10]]  # acknowledged 500 ms ago or more
            found = DiskStore.open(run.disk.after_power_loss(KeepNothing()), ASYNC)
            assert len(safe) <= len(log_of(found)) < len(run.acknowledged)


SENDS = st.tuples(st.just("send"), st.integers(0, 1), st.integers(0, 300), st.sampled_from([0, 0, 0, 1, 2]))
BATCHES = st.tuples(st.just("batch"), st.integers(0, 1), st.integers(1, 4))
OTHER = st.sampled_from([("flush",), ("pass", 300), ("pass", 1_100), ("commit", 1), ("commit", 3), ("reopen",)])


def drawn_work(steps: list[tuple[object, ...]]) -> Work:
    def work(run: Run) -> None:
        store = run.start()
        for number, step in enumerate(steps):
            match step:
                case ("send", int(queue_id), int(size), int(level)):
                    run.send(queue_id, f"m{number}".encode() + b"x" * size, level=level)
                case ("batch", int(queue_id), int(count)):
                    run.send_batch(queue_id, [f"m{number}/{part}".encode() for part in range(count)])
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
