"""Consumed offsets: when they move, when they are told, and in which way."""

from __future__ import annotations

from typing import Any

from reference_impl.core.io import Oneway
from reference_impl.protocol.codes import RequestCode
from specs.vocabulary import Kind, Outcome, Queue

LANE = Queue("t", "b0", 0)


def test_offsets_are_told_first_after_10_s_and_then_each_5_s(bench: Any) -> None:
    """One way, changed or not; not while there is nothing to tell."""
    b = bench().start()
    b.advance(10_000)
    assert b.commits() == []
    b.append(1)
    b.returns()
    start = b.now
    b.advance(10_000)
    told = [seen for seen in b.of(Kind.COMMIT) if "view" not in seen.fields]
    assert [(c.fields["value"], c.began_ms - start, c.outcome) for c in told] == [
        (1, 5_000, Outcome.SENT),
        (1, 10_000, Outcome.SENT),
    ]
    updates = [e for e in b.effects if isinstance(e, Oneway)]
    assert {(e.command.code, e.command.is_oneway) for e in updates} == {
        (RequestCode.UPDATE_CONSUMER_OFFSET, True)
    }


def test_the_offset_is_the_last_of_the_batch_plus_one(bench: Any) -> None:
    b = bench(batch=3).start()
    b.append(5)
    b.returns()
    assert b.consumer.lanes[LANE].offset == 3


def test_nothing_is_told_of_a_running_or_suspended_batch(one_message: Any) -> None:
    b = one_message
    b.advance(10_000)
    b.returns(Outcome.SUSPEND, suspend_ms=30_000)
    b.advance(20_000)
    assert b.commits() == []


def test_a_found_offset_is_told_back(bench: Any) -> None:
    b = bench()
    b.stored[LANE] = 0
    b.start()
    b.advance(10_000)
    assert b.commits() == [0]


def test_a_released_lane_is_not_told_again(bench: Any) -> None:
    b = bench().start()
    b.append(1)
    b.returns()
    b.take_away()
    told = len(b.commits())
    b.advance(60_000)
    assert len(b.commits()) == told


def test_a_lane_that_is_being_left_is_told_once(one_message: Any) -> None:
    """What was finished before the drop; the call that runs over it is not in it, and nothing is told after it."""
    b = one_message
    b.returns()
    b.take_away()
    assert b.commits() == [1]
    assert [seen.kind for seen in b.seen][-2:] == [Kind.COMMIT, Kind.DROP]
    b.advance(20_000)
    b.returns()
    b.advance(20_000)
    assert b.commits() == [1]
