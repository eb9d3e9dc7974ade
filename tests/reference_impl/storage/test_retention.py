"""Retention on a disk: whole segments go, queues keep their place, and a failure in the middle costs nothing more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from reference_impl.core.broker.log import Draft, StoreFull, Trimmed
from reference_impl.storage import DiskStore, RealDisk
from reference_impl.storage.layout import segment_path
from reference_impl.storage.simulated_disk import (
    Keep,
    KeepDrawn,
    KeepNothing,
    PowerLost,
    SimulatedDisk,
)
from tests.reference_impl.storage.runs import ASYNC, SYNC, TOPIC, contents

EACH_MS = 1_000
COUNT = 24


def filled(disk: SimulatedDisk | RealDisk, *, count: int = COUNT, others: int = 1) -> DiskStore:
    """A store of several segments: queue 0 gets a message each second, queue 1 the first `others` as well."""
    store = DiskStore.open(disk, replace(ASYNC, queue_file_bytes=100, index_block=3))
    for number in range(count):
        for queue_id in (0, 1)[: 1 + (number < others)]:
            draft = Draft(TOPIC, queue_id, b"x" * 150 + b"%d" % number, {"UNIQ_KEY": f"k{number}"})
            store.append(draft, number * EACH_MS, "127.0.0.1:1")
    store._sync()
    store.settle()
    return store


def segments(disk: SimulatedDisk) -> list[str]:
    return [path for path in disk.paths() if path.startswith("commitlog/")]


def test_whole_segments_go_and_with_them_what_queues_say_of_them() -> None:
    disk = SimulatedDisk()
    store = filled(disk)
    before = contents(store)
    gone = store.clean(10 * EACH_MS, 10)
    assert [each.queue_id for each in gone] == [0, 1]
    lowest = gone[0].min_offset
    # No message that is younger went, and of the segment that holds both kinds nothing.
    assert 0 < lowest <= 11
    assert store.queue(TOPIC, 0).min_offset == lowest
    assert contents(store) == {(TOPIC, 0): before[TOPIC, 0][lowest:]}
    assert segment_path(0) not in segments(disk)
    assert store.at(0) is None


def test_a_queue_that_lost_everything_goes_on_where_it_was() -> None:
    disk = SimulatedDisk()
    store = filled(disk, others=2)
    assert Trimmed(TOPIC, 1, 2) in store.clean(10 * EACH_MS, 10)
    store.close()
    again = DiskStore.open(disk)
    queue = again.queue(TOPIC, 1)
    assert (queue.min_offset, queue.max_offset) == (2, 2)
    assert again.append(Draft(TOPIC, 1, b"n", {}), 99_000, "127.0.0.1:1").queue_offset == 2
    assert [line for line in again.said if "rebuilt" in line] == []


def test_the_last_segment_stays() -> None:
    disk = SimulatedDisk()
    store = filled(disk)
    while store.clean(None, 1):
        pass
    assert len(segments(disk)) == 1
    assert len(contents(store)[TOPIC, 0]) > 0


def test_what_is_not_safe_yet_stays() -> None:
    store = DiskStore.open(SimulatedDisk(), ASYNC)
    for _ in range(20):
        store.append(Draft(TOPIC, 0, b"x" * 150, {}), 0, "127.0.0.1:1")
    assert store.clean(None, 10) == []


def test_so_many_segments_go_at_once() -> None:
    disk = SimulatedDisk()
    store = filled(disk)
    before = len(segments(disk))
    store.clean(None, 2)
    assert len(segments(disk)) == before - 2


def test_files_of_a_queue_that_name_nothing_any_more_go_too() -> None:
    disk = SimulatedDisk()
    store = filled(disk)
    store.clean(15 * EACH_MS, 10)
    lowest = store.queue(TOPIC, 0).min_offset
    kept = [path for path in disk.paths() if path.startswith(f"consumequeue/{TOPIC}/0/")]
    assert [int(path[-20:]) // 20 for path in kept] == list(range(lowest - lowest % 5, COUNT, 5))


@pytest.mark.parametrize(
    "keep", [Keep(), KeepNothing(), *(KeepDrawn(Random(number)) for number in range(6))]
)
def test_the_power_fails_in_the_middle_of_a_cleaning(keep: Keep) -> None:
    """At every operation of it: the queues are what they were, without some of the oldest messages."""
    whole = contents(filled(SimulatedDisk(), others=2))
    ends = {0: COUNT, 1: 2}
    for power in steps():
        disk = SimulatedDisk()
        store = filled(disk, others=2)
        disk.power = disk.operations + power
        try:
            store.clean(15 * EACH_MS, 10)
        except PowerLost:
            pass
        else:
            return
        again = DiskStore.open(disk.after_power_loss(keep), SYNC)
        for (topic, queue_id), messages in contents(again).items():
            assert messages == whole[topic, queue_id][-len(messages) :]
        for queue_id, end in ends.items():
            assert again.queue(TOPIC, queue_id).max_offset == end
        again.clean(15 * EACH_MS, 10)
        again.close()
    pytest.fail("the power never lasted")


def steps() -> Iterator[int]:
    yield from range(200)


def test_a_full_disk_is_cleaned_and_no_queue_forgets_its_end() -> None:
    """The entries of the queues can't be written: then only what nobody needs them for goes."""
    disk = SimulatedDisk()
    store = filled(disk, others=2)
    for _ in range(2):
        store.append(Draft(TOPIC, 2, b"x" * 150, {}), 99_000, "127.0.0.1:1")
    store._sync()
    disk.room = 0
    assert Trimmed(TOPIC, 1, 2) in store.clean(None, 100)
    store.abandon()
    disk.room = None
    again = DiskStore.open(disk)
    assert [again.queue(TOPIC, queue_id).max_offset for queue_id in (0, 1, 2)] == [COUNT, 2, 2]


def test_a_real_disk_says_how_full_it_is(tmp_path: Path) -> None:
    store = filled(RealDisk(tmp_path))
    use = store.disk_use()
    assert use is not None
    assert 0 < use <= 1
    gone = store.clean(None, 100)
    store.close()
    assert gone
    assert DiskStore.open(RealDisk(tmp_path)).queue(TOPIC, 0).min_offset == gone[0].min_offset


def test_a_topic_that_was_dropped_does_not_come_back_with_a_start() -> None:
    """Its messages are in the log all the same, until retention takes them; one made later goes on where it was."""
    disk = SimulatedDisk()
    store = filled(disk, others=2)
    assert store.drop_topic(TOPIC) == [Trimmed(TOPIC, 0, COUNT), Trimmed(TOPIC, 1, 2)]
    new = store.append(Draft(TOPIC, 1, b"new", {}), 99_000, "127.0.0.1:1")
    store.abandon()
    for _ in range(2):
        again = DiskStore.open(disk)
        assert contents(again) == {(TOPIC, 1): [(2, b"new")]}
        assert (new.queue_offset, again.queue(TOPIC, 0).max_offset) == (2, COUNT)
        again.close()


def test_a_drop_that_can_not_be_written_down_drops_nothing() -> None:
    disk = SimulatedDisk()
    store = filled(disk)
    disk.room = 0
    with pytest.raises(StoreFull):
        store.drop_topic(TOPIC)
    assert store.queue(TOPIC, 0).min_offset == 0
