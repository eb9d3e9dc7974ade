"""The two maps of one lane."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_impl.core.consumer.lane_life import Phase
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.protocol.message import StoredMessage
from specs.vocabulary import Lane


def lane_queue(phase: Phase = Phase.IDLE) -> ProcessQueue:
    lane = Lane("g", "t", "b0", 0)
    return ProcessQueue(lane=lane, serial=1, incarnation="c1#1", start=0, row={}, phase=phase)


def messages(*offsets: int) -> list[StoredMessage]:
    return [StoredMessage("t", 0, offset, offset, b"") for offset in offsets]


def offsets(found: list[StoredMessage]) -> list[int]:
    return [message.queue_offset for message in found]


@pytest.mark.parametrize("phase", Phase)
def test_put_starts_a_task_only_when_none_is_there(phase: Phase) -> None:
    """One task per lane, wherever that stands."""
    pq = lane_queue(phase)
    assert pq.put(messages(0, 1)) is (phase is Phase.IDLE)


def test_nothing_put_starts_no_task() -> None:
    assert lane_queue().put([]) is False


def test_a_message_is_held_once() -> None:
    """Pulled again while pending or taken, it is left alone."""
    pq = lane_queue()
    pq.put(messages(0, 1))
    pq.take(1)
    pq.put(messages(0, 1, 2))
    assert pq.count == 3
    assert offsets(pq.take(9)) == [1, 2]


def test_commit_covers_everything_taken() -> None:
    pq = lane_queue()
    pq.put(messages(4, 5, 6))
    pq.take(1)
    pq.take(1)
    assert pq.commit() == 6
    assert pq.count == 1
    assert pq.commit() == -1


def test_make_again_returns_the_batch_and_keeps_earlier_ones_taken() -> None:
    pq = lane_queue()
    pq.put(messages(0, 1, 2))
    pq.take(1)
    pq.make_again(pq.take(1))
    assert offsets(pq.take(9)) == [1, 2]
    assert pq.commit() == 3


def test_roll_back_returns_all_taken_and_counts_nothing() -> None:
    pq = lane_queue()
    pq.put(messages(0, 1, 2))
    pq.take(1)
    pq.take(1)
    pq.roll_back()
    assert offsets(pq.take(9)) == [0, 1, 2]
    assert [pq.times(m) for m in messages(0, 1, 2)] == [0, 0, 0]


def test_counters_add_to_what_the_message_carries_and_end_with_it() -> None:
    pq = lane_queue()
    carried = StoredMessage("t", 0, 0, 0, b"", reconsume_times=2)
    pq.put([carried])
    pq.take(1)
    pq.count_retry(carried)
    assert pq.times(carried) == 3
    pq.commit()
    assert pq.times(carried) == 2


@given(st.lists(st.lists(st.integers(0, 30), max_size=6), max_size=8), st.data())
def test_batches_ascend_and_nothing_is_lost(puts: list[list[int]], data: st.DataObject) -> None:
    """Whatever is put, in whatever order, and put back: each take gives the lowest, and all come out once."""
    pq = lane_queue()
    wanted: set[int] = set()
    for put in puts:
        pq.put(messages(*put))
        wanted |= set(put)
        batch = pq.take(data.draw(st.integers(1, 4)))
        if data.draw(st.booleans()):
            pq.make_again(batch)
        elif data.draw(st.booleans()):
            pq.roll_back()
    pq.roll_back()
    assert pq.count == len(wanted)
    assert offsets(pq.take(100)) == sorted(wanted)
