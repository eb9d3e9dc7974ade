"""Answers that make no sense, answers nobody waits for, brokers without an address: never an exception."""

from __future__ import annotations

from typing import Any

import pytest

from reference_impl.core.io import Answered, Failed, Opened, TimerFired
from reference_impl.protocol.codes import RequestCode
from reference_impl.protocol.command import Command
from specs.vocabulary import Kind, Outcome, Queue

LANE = Queue("t", "b0", 0)

GARBLED = [
    # request, an answer that can't be read, how the operation ended
    (RequestCode.GET_ROUTEINFO_BY_TOPIC, Command(0, body=b"{"), None),
    (RequestCode.GET_CONSUMER_LIST_BY_GROUP, Command(0, body=b"[]"), None),
    (RequestCode.LOCK_BATCH_MQ, Command(0, body=b"x"), (Kind.LOCK, Outcome.UNKNOWN)),
    (RequestCode.QUERY_CONSUMER_OFFSET, Command(0), (Kind.FETCH_OFFSET, Outcome.UNKNOWN)),
    (RequestCode.GET_MAX_OFFSET, Command(0, {"offset": "1e3"}), None),
    (RequestCode.PULL_MESSAGE, Command(0, {"nextBeginOffset": "1"}), (Kind.PULL, Outcome.UNKNOWN)),
]


@pytest.mark.parametrize(("code", "answer", "ended"), GARBLED)
def test_a_garbled_answer_is_no_answer_and_the_next_one_mends_it(
    bench: Any, code: int, answer: Command, ended: tuple[Kind, Outcome] | None
) -> None:
    b = bench(consume_from="last")
    b.hold.add(code)
    b.start()
    for request in b._unhold(code):
        b.give(Answered(request.token, answer))
    if ended:
        kind, outcome = ended
        assert next(seen.outcome for seen in b.of(kind)) is outcome
    b.advance(31_000)
    b.append(1)
    assert b.offsets == [0]


def test_answers_that_nobody_waits_for_change_nothing(bench: Any) -> None:
    b = bench().start()
    for stray in (
        Answered("x", Command(0)),
        Failed(99_999, "timeout"),
        TimerFired("x"),
        TimerFired(("unknown", 1)),
        TimerFired(("pull", 77)),
        TimerFired(("relock", 77)),
        TimerFired(("resubmit", 77)),
        Opened("c", "p"),
    ):
        assert b.give(stray) == []


def test_a_broker_without_a_master_is_unreachable(bench: Any) -> None:
    """Nothing can be sent to it: pulls and renewals end at once and are tried again, one-way words are dropped."""
    b = bench().start()
    b.consumer.addresses.clear()
    b.advance(1_000)
    assert b.of(Kind.LOCK)[-1].outcome is Outcome.UNKNOWN
    b.append(1)
    assert b.of(Kind.PULL)[-1].outcome is Outcome.REFUSED
    b.returns()
    b.take_away()
    assert (b.commits(), b.unlocked) == ([], [])


def test_a_parked_pull_of_a_lane_that_is_gone_may_fail(bench: Any) -> None:
    b = bench()
    b.hold.add(RequestCode.PULL_MESSAGE)
    b.start()
    b.take_away()
    timers = len(b.timer("pull"))
    b.fail_held(RequestCode.PULL_MESSAGE)
    assert len(b.timer("pull")) == timers


def test_a_copy_goes_to_a_queue_that_the_route_knows(bench: Any) -> None:
    b = bench(max_reconsume_times=0)
    b.queues["%RETRY%g"] = 3
    b.start()
    b.append(4)
    for _ in range(4):
        b.returns(Outcome.SUSPEND)
    assert [header.queue_id for header in b.sent] == [1, 2, 0, 1]
