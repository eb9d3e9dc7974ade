"""Pulls: what must be true before one, and what follows from its answer."""

from __future__ import annotations

from typing import Any

import pytest

from reference_impl.core.io import Answered
from reference_impl.protocol.codes import RequestCode
from reference_impl.protocol.command import Command
from specs.vocabulary import Kind, Outcome, Queue

LANE = Queue("t", "b0", 0)
PULL = RequestCode.PULL_MESSAGE
QUERY = RequestCode.QUERY_CONSUMER_OFFSET


def asked(b: Any) -> list[int]:
    return [seen.fields["queue_offset"] for seen in b.of(Kind.PULL)]


def test_the_next_pull_asks_where_the_last_one_ended(bench: Any) -> None:
    b = bench(pull_batch=2).start()
    b.append(5)
    b.append(1)
    assert asked(b) == [0, 2, 4, 5, 6]
    first = b.of(Kind.PULL)[0]
    assert (first.outcome, first.end_fields) == (Outcome.OK, {"code": 0, "value": 2, "detail": "2"})


def test_a_pull_carries_the_long_poll_and_the_subscription_version(bench: Any) -> None:
    b = bench(long_poll_ms=7_000, pull_batch=9).start()
    ext = b.requests(PULL)[0].command.ext
    assert (ext["sysFlag"], ext["suspendTimeoutMillis"], ext["maxMsgNums"]) == ("2", "7000", "9")
    assert ext["subVersion"] == str(b.now)


def test_not_locked_is_tried_again_after_3_s(bench: Any) -> None:
    b = bench().start()
    b.refused = {LANE}
    b.advance(1_000)
    b.append(1)  # the parked pull answers
    pulls = len(asked(b))
    b.refused = set()
    b.consumer.lanes[LANE].locked = True
    b.advance(2_999)
    assert len(asked(b)) == pulls
    b.advance(1)
    assert len(asked(b)) == pulls + 1


@pytest.mark.parametrize(("cached", "held_back"), [(3, False), (4, True)])
def test_flow_control(bench: Any, cached: int, held_back: bool) -> None:
    """More than the threshold: again after 50 ms, until the listener has taken enough."""
    b = bench(pull_threshold=3, pull_batch=cached).start()
    b.append(cached)
    assert asked(b) == ([0] if held_back else [0, cached])
    assert b.timer("pull") == ([50] if held_back else [])
    b.returns()
    b.advance(50)
    assert asked(b) == [0, cached]


def test_uncommitted_messages_count_toward_flow_control(bench: Any) -> None:
    b = bench(pull_threshold=3, pull_batch=4).start()
    b.append(4)
    for _ in range(4):
        b.returns(manual=True)
    b.advance(1_000)
    assert asked(b) == [0]


ANCHOR = [(None, 3), (1, 1), (3, 3), (4, 4)]


@pytest.mark.parametrize(("stored", "first"), ANCHOR)
def test_the_first_pull_asks_again_and_adopts(bench: Any, stored: int | None, first: int) -> None:
    """Stored meanwhile: adopted, even when lower. Nothing stored: the start stays, however much came since."""
    b = bench(consume_from="last")
    b.append(3)
    b.hold.add(RequestCode.GET_MAX_OFFSET)
    b.start()
    b.hold.add(QUERY)
    b.answer_held(RequestCode.GET_MAX_OFFSET)
    b.append(2)
    if stored is not None:
        b.stored[LANE] = stored
    b.answer_held(QUERY)
    assert asked(b)[0] == first
    fetched = b.of(Kind.FETCH_OFFSET)[1]
    assert fetched.fields["incarnation"] == "c1#1"


@pytest.mark.parametrize("how", ["code", "timeout"])
def test_an_error_at_the_first_pull_is_never_nothing_stored(bench: Any, how: str) -> None:
    """It asks again after 3 s, and pulls nothing before it knows."""
    b = bench(consume_from="last")
    b.append(3)
    b.hold.add(RequestCode.GET_MAX_OFFSET)
    b.start()
    b.stored[LANE] = 1
    if how == "code":
        b.codes[QUERY] = [1]
        b.answer_held(RequestCode.GET_MAX_OFFSET)
    else:
        b.hold.add(QUERY)
        b.answer_held(RequestCode.GET_MAX_OFFSET)
        b.fail_held(QUERY)
    b.advance(2_999)
    assert asked(b) == []
    b.advance(1)
    assert asked(b) == [1, 3]


def test_the_commit_travels_with_the_pull(bench: Any) -> None:
    b = bench().start()
    b.append(1)
    b.returns()
    b.append(1)
    piggybacked = [seen for seen in b.of(Kind.COMMIT) if seen.fields.get("view") == "pull"]
    assert [(c.fields["value"], c.outcome) for c in piggybacked] == [
        (1, None)
    ]  # parked with its pull
    ext = b.requests(PULL)[-1].command.ext
    assert (ext["sysFlag"], ext["commitOffset"]) == ("3", "1")
    b.append(1)
    assert (piggybacked[0].outcome, piggybacked[0].end_fields) == (Outcome.OK, {"code": 0})


def test_no_commit_travels_at_0(bench: Any) -> None:
    b = bench()
    b.stored[LANE] = 0
    b.start()
    assert b.requests(PULL)[0].command.ext["sysFlag"] == "2"


FAILURES = [
    ("timeout", Outcome.UNKNOWN),
    ("closed", Outcome.UNKNOWN),
    ("unreachable", Outcome.REFUSED),
]


@pytest.mark.parametrize(("reason", "outcome"), FAILURES)
def test_a_failed_pull_is_repeated_after_3_s_from_the_same_offset(
    bench: Any, reason: str, outcome: Outcome
) -> None:
    b = bench()
    b.stored[LANE] = 2
    b.append(2)
    b.hold.add(PULL)
    b.start()
    b.fail_held(PULL, reason)
    assert [seen.outcome for seen in b.of(Kind.PULL)] == [outcome]
    assert b.of(Kind.COMMIT)[0].outcome is outcome
    b.advance(2_999)
    assert asked(b) == [2]
    b.advance(1)
    assert asked(b) == [2, 2]


def test_a_refused_pull_refuses_its_commit(bench: Any) -> None:
    b = bench()
    b.stored[LANE] = 1
    b.append(1)
    b.codes[PULL] = [26]
    b.start()
    assert b.of(Kind.PULL)[0].outcome is Outcome.REFUSED
    assert b.of(Kind.PULL)[0].end_fields["code"] == 26
    assert b.of(Kind.COMMIT)[0].outcome is Outcome.REFUSED


@pytest.mark.parametrize(("code", "delay_ms"), [(2, 3_000), (14, 3_000), (215, 20)])
def test_a_broker_that_is_busy_is_asked_again_later(bench: Any, code: int, delay_ms: int) -> None:
    """SYSTEM_BUSY like every error; FLOW_CONTROL, which asks for a pause only, soon."""
    b = bench()
    b.codes[PULL] = [code]
    b.start()
    assert asked(b) == [0]
    b.advance(delay_ms - 1)
    assert asked(b) == [0]
    b.advance(1)
    assert asked(b) == [0, 0]


@pytest.mark.parametrize(("start", "moved"), [(1, 3), (9, 5)])
def test_offset_moved(bench: Any, start: int, moved: int) -> None:
    """Too small or too big: the broker's word is stored, the lane is left and taken again there."""
    b = bench()
    b.min_offset[LANE] = 3
    b.append(2)
    b.stored[LANE] = start
    b.start()
    assert b.of(Kind.PULL)[0].end_fields["value"] == moved
    assert b.of(Kind.PULL)[0].outcome is Outcome.REFUSED
    assert b.stored[LANE] == moved
    assert b.of(Kind.DROP)[0].fields["detail"] == "offset moved by the broker"
    assert b.unlocked == [LANE]
    b.advance(1_000)
    assert [seen.fields["value"] for seen in b.of(Kind.ADD)] == [start, moved]


def test_offset_moved_while_a_call_runs_cannot_be_overwritten_by_it(one_message: Any) -> None:
    """The parked pull is answered with another place; the running call's result comes too late to matter."""
    b = one_message
    b.min_offset[LANE] = 50
    b.logs[LANE] = []
    b.append(0)
    assert (b.stored[LANE], b.unlocked) == (50, [])
    b.returns()
    assert b.unlocked == [LANE]
    b.advance(20_000)
    assert b.stored[LANE] == 50
    assert [seen.fields["value"] for seen in b.of(Kind.ADD)] == [0, 50]


def test_tags_are_compared_exactly_and_the_offset_passes_what_was_filtered(bench: Any) -> None:
    """`Aa` and `BB` have one hash code in Java, so a broker delivers both."""
    b = bench(topics={"t": "Aa || C"}).start()
    b.append(1, TAGS="BB")
    b.append(1, TAGS="Aa")
    b.append(1)
    assert b.offsets == [1]
    b.returns()
    assert b.calls == []


def test_an_idle_lane_follows_the_brokers_offset(bench: Any) -> None:
    """PULL_NOT_FOUND with a higher offset: what was skipped is finished; a held message keeps the offset."""
    b = bench().start()
    b.append(1)
    pq = b.consumer.lanes[LANE]
    b.consumer.offsets.correct_offset(pq, 9)
    assert pq.offset == -1
    b.returns()
    b.consumer.offsets.correct_offset(pq, 9)
    assert pq.offset == 9
    b.consumer.offsets.correct_offset(pq, 8)
    assert pq.offset == 9


def test_an_answer_for_a_dropped_lane_is_not_used(bench: Any) -> None:
    b = bench().start()
    b.take_away()
    pulls = len(asked(b))
    b.append(1)
    b.advance(60_000)
    assert b.calls == []
    assert len(asked(b)) == pulls
    assert b.of(Kind.PULL)[0].outcome is Outcome.OK


def test_what_lies_behind_a_broken_record_is_asked_for_again(bench: Any) -> None:
    """Those before it are kept, and nothing is skipped."""
    b = bench()
    b.hold.add(PULL)
    b.start()
    b.append(2)
    (request,) = b.held
    whole = b._answer(request)
    broken = Command(0, whole.ext, whole.body[:-1], flag=1)
    b.give(Answered(request.token, broken))
    assert b.offsets == [0]
    assert asked(b) == [0, 1]
