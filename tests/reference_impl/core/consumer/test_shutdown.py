"""Leaving in good order."""

from __future__ import annotations

from typing import Any

import pytest

from reference_impl.core.io import Answered, Begin, Oneway, Request, Stopped, TimerFired
from reference_impl.protocol.codes import RequestCode
from reference_impl.protocol.command import Command
from specs.vocabulary import Kind, Outcome, Queue

UNREGISTER = RequestCode.UNREGISTER_CLIENT
LANE = Queue("t", "b0", 0)


def codes(effects: list[Any]) -> list[int]:
    return [e.command.code for e in effects if isinstance(e, Request | Oneway)]


def test_offsets_before_leases_before_the_goodbye(bench: Any) -> None:
    b = bench().start()
    b.append(1)
    b.returns()
    effects = b.shut_down()
    assert codes(effects) == [
        RequestCode.UPDATE_CONSUMER_OFFSET,
        RequestCode.UNLOCK_BATCH_MQ,
        UNREGISTER,
    ]
    assert isinstance(effects[-1], Stopped)
    assert [e.kind for e in effects if isinstance(e, Begin)] == [
        Kind.LEAVE,
        Kind.COMMIT,
        Kind.UNLOCK,
    ]
    assert b.of(Kind.LEAVE)[0].outcome is Outcome.OK
    assert b.of(Kind.DROP)[0].fields["detail"] == "shutdown"
    assert b.stored[LANE] == 1


def test_all_lanes_of_a_broker_go_in_one_unlock(bench: Any) -> None:
    b = bench(queues=3).start()
    b.shut_down()
    (unlock,) = b.of(Kind.UNLOCK)
    assert [row["queue_id"] for row in unlock.rows] == [0, 1, 2]
    assert [row["incarnation"] for row in unlock.rows] == ["c1#1", "c1#2", "c1#3"]


def test_it_waits_for_the_running_call_whose_result_still_counts(one_message: Any) -> None:
    b = one_message
    assert codes(b.shut_down()) == []
    b.advance(4_999)
    effects = b.returns()
    assert codes(effects) == [
        RequestCode.UPDATE_CONSUMER_OFFSET,
        RequestCode.UNLOCK_BATCH_MQ,
        UNREGISTER,
    ]
    assert b.stored[LANE] == 1
    assert b.calls == []


def test_a_call_that_outlives_the_waiting_time_is_cut(one_message: Any) -> None:
    b = one_message
    b.shut_down()
    b.advance(5_000)
    assert b.of(Kind.DELIVER)[0].outcome is Outcome.CUT
    assert b.unlocked == [LANE]
    assert b.of(Kind.LEAVE)[0].outcome is Outcome.OK
    assert b.returns() == []


@pytest.mark.parametrize("how", ["answer", "timeout"])
def test_it_waits_for_a_dead_letter_on_its_way(bench: Any, how: str) -> None:
    b = bench(max_reconsume_times=0).start()
    b.append(1)
    b.hold.add(RequestCode.SEND_MESSAGE_V2)
    b.returns(Outcome.SUSPEND)
    assert codes(b.shut_down()) == []
    if how == "answer":
        b.answer_held(RequestCode.SEND_MESSAGE_V2)
        assert b.stored[LANE] == 1
    else:
        b.fail_held(RequestCode.SEND_MESSAGE_V2)
        assert LANE not in b.stored
    assert b.unlocked == [LANE]


def test_while_it_waits_leases_are_renewed_but_nothing_new_begins(bench: Any) -> None:
    b = bench(queues=2, shutdown_wait_ms=60_000).start()
    b.append(2, 0)
    b.shut_down()
    locks, pulls = len(b.of(Kind.LOCK)), len(b.of(Kind.PULL))
    b.append(1, 1)
    b.advance(41_000)
    assert len(b.of(Kind.LOCK)) > locks
    assert len(b.of(Kind.PULL)) == pulls
    assert len(b.calls) == 1
    b.returns()
    assert b.calls == []


def test_it_waits_for_the_goodbyes_or_their_timeouts(bench: Any) -> None:
    b = bench().start()
    b.hold.add(UNREGISTER)
    effects = b.shut_down()
    assert not any(isinstance(e, Stopped) for e in effects)
    b.fail_held(UNREGISTER)
    assert isinstance(b.effects[-1], Stopped)


def test_a_lane_on_its_way_in_is_given_back(bench: Any) -> None:
    b = bench()
    b.hold.add(RequestCode.QUERY_CONSUMER_OFFSET)
    b.start()
    b.hold.add(UNREGISTER)
    b.shut_down()
    b.answer_held(RequestCode.QUERY_CONSUMER_OFFSET)
    assert b.unlocked == [LANE]
    assert b.of(Kind.ADD) == []


def test_a_lane_that_was_being_left_is_given_back_too(one_message: Any) -> None:
    b = one_message
    b.take_away()
    b.shut_down()
    b.advance(5_000)
    assert b.unlocked == [LANE]
    assert b.of(Kind.UNLOCK)[0].rows[0]["incarnation"] == "c1#1"


def test_after_the_end_nothing_moves_it(one_message: Any) -> None:
    b = one_message
    b.returns()
    b.shut_down()
    b.returns()
    for input in (TimerFired(("persist",)), TimerFired("unknown"), Answered(1, Command(0))):
        assert b.give(input) == []
    assert b.shut_down() == []


def test_shutdown_before_the_routes_are_known(bench: Any) -> None:
    b = bench()
    b.hold.add(RequestCode.GET_ROUTEINFO_BY_TOPIC)
    b.start()
    assert isinstance(b.shut_down()[-1], Stopped)


def test_a_second_shutdown_changes_nothing(one_message: Any) -> None:
    one_message.shut_down()
    assert one_message.shut_down() == []
    assert len(one_message.of(Kind.LEAVE)) == 1


def test_with_nobody_to_say_goodbye_to_it_ends_with_the_last_call(one_message: Any) -> None:
    """No broker has a known address: the lease can't be given back, and nothing follows the end."""
    b = one_message
    b.consumer.addresses.clear()
    b.shut_down()
    effects = b.returns(Outcome.SUSPEND)
    assert isinstance(effects[-1], Stopped)
    (unlock,) = b.of(Kind.UNLOCK)
    assert (unlock.outcome, unlock.end_fields) == (Outcome.REFUSED, {"detail": "unreachable"})
    assert b.unlocked == []
    assert b.consumer.tracked == {}


def test_the_end_of_the_waiting_time_comes_late(bench: Any) -> None:
    """A timer that fires although all lanes were given back meanwhile."""
    b = bench().start()
    b.hold.add(UNREGISTER)
    b.shut_down()
    assert b.give(TimerFired(("shutdown",))) == []
