"""Leases: who is asked, what an answer does, what is given back."""

from __future__ import annotations

from typing import Any

import pytest

from reference_impl.protocol.bodies import LockBatch
from reference_impl.protocol.codes import RequestCode
from specs.vocabulary import Kind, Outcome, Queue

LOCK = RequestCode.LOCK_BATCH_MQ
LANE = Queue("t", "b0", 0)


def test_all_lanes_of_a_broker_are_renewed_in_one_request_each_interval(bench: Any) -> None:
    b = bench(queues=3).start()
    before = len(b.requests(LOCK))
    b.advance(1_000)
    b.advance(40_000)
    asked = [LockBatch.decode(r.command.body).queues for r in b.requests(LOCK)[before:]]
    assert asked == [tuple(Queue("t", "b0", n) for n in range(3))] * 3
    assert [seen.began_ms - b.of(Kind.JOIN)[0].began_ms for seen in b.of(Kind.LOCK)[1:]] == [
        1_000,
        21_000,
        41_000,
    ]


@pytest.mark.parametrize("granted", [True, False])
def test_renewal_answered(bench: Any, granted: bool) -> None:
    """Granted: fresh; refused: not locked, and the lane's last grant stays as old as it is."""
    b = bench().start()
    b.refused = set() if granted else {LANE}
    before = b.consumer.lanes[LANE].last_lock_ms
    b.advance(1_000)
    pq = b.consumer.lanes[LANE]
    assert pq.locked is granted
    assert pq.last_lock_ms == (before + 1_000 if granted else before)


@pytest.mark.parametrize("reason", ["timeout", "closed", "unreachable"])
def test_renewal_without_an_answer_keeps_the_flag(bench: Any, reason: str) -> None:
    """Nobody has said no, so nothing is told as refused."""
    b = bench().start()
    before = b.consumer.lanes[LANE].last_lock_ms
    b.hold.add(LOCK)
    b.advance(1_000)
    b.fail_held(LOCK, reason)
    pq = b.consumer.lanes[LANE]
    assert (pq.locked, pq.last_lock_ms) == (True, before)
    assert b.of(Kind.LOCK)[-1].outcome is Outcome.UNKNOWN


def test_renewal_answered_with_an_error_keeps_the_flag(bench: Any) -> None:
    b = bench().start()
    b.codes[LOCK] = [1]
    b.advance(1_000)
    assert b.consumer.lanes[LANE].locked is True
    assert b.of(Kind.LOCK)[-1].outcome is Outcome.UNKNOWN


def test_partial_answer_is_told_per_lane(bench: Any) -> None:
    b = bench(queues=2)
    b.refused = {LANE}
    b.start()
    lock = b.of(Kind.LOCK)[0]
    assert lock.outcome is Outcome.OK
    assert [row["outcome"] for row in lock.end_rows] == [Outcome.REFUSED, Outcome.OK]
    assert sorted(b.consumer.lanes) == [Queue("t", "b0", 1)]


def test_a_late_answer_never_touches_the_next_incarnation(bench: Any) -> None:
    """The renewal was asked for the first incarnation, and is answered with a refusal when the second lives."""
    b = bench().start()
    b.hold.add(LOCK)
    b.advance(1_000)
    b.hold.clear()
    b.take_away()
    b.members = ["c1"]
    b.notify()
    assert b.consumer.lanes[LANE].incarnation == "c1#2"
    b.refused = {LANE}
    b.answer_held(LOCK)
    assert b.consumer.lanes[LANE].locked is True


def test_a_grant_that_arrives_after_the_release_is_given_back(bench: Any) -> None:
    """The lock request may have reached the broker after our unlock: nobody else would free the lane."""
    b = bench().start()
    b.hold.add(LOCK)
    b.advance(1_000)
    b.take_away()
    assert b.unlocked == [LANE]
    b.answer_held(LOCK)
    assert b.unlocked == [LANE, LANE]


def test_unlock_waits_for_the_running_call(one_message: Any) -> None:
    b = one_message
    b.take_away()
    b.advance(100_000)
    assert b.unlocked == []
    b.returns()
    assert b.unlocked == [LANE]
    unlock = b.of(Kind.UNLOCK)[0]
    assert (unlock.outcome, unlock.rows[0]["incarnation"]) == (Outcome.SENT, "c1#1")


def test_unlock_follows_at_once_when_nothing_runs(bench: Any) -> None:
    b = bench().start()
    b.append(1)
    b.returns()
    b.take_away()
    kinds = [seen.kind for seen in b.seen if seen.kind in (Kind.COMMIT, Kind.DROP, Kind.UNLOCK)]
    assert kinds[-3:] == [Kind.COMMIT, Kind.DROP, Kind.UNLOCK]
    assert b.stored[LANE] == 1


def test_a_lane_that_is_being_left_is_not_renewed(one_message: Any) -> None:
    b = one_message
    b.take_away()
    asked = len(b.requests(LOCK))
    b.advance(60_000)
    assert len(b.requests(LOCK)) == asked


def test_a_lane_that_is_being_left_is_taken_again_when_the_call_has_ended(one_message: Any) -> None:
    b = one_message
    b.take_away()
    b.members = ["c1"]
    b.notify()
    assert b.consumer.lanes == {}
    b.returns()
    b.advance(1_500)
    assert b.consumer.lanes[LANE].incarnation == "c1#2"
    assert b.offsets == [0]
