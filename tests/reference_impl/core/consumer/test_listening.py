"""The consuming task: guards and their boundaries, threads, batches, what the recorder is told."""

from __future__ import annotations

from typing import Any

import pytest

from reference_impl.core.io import Begin, CallListener, End, ListenerReturned
from reference_impl.protocol.codes import RequestCode
from specs.vocabulary import CommitMode, Kind, Lane, Outcome

LOCK = RequestCode.LOCK_BATCH_MQ


def test_happy_path_tells_everything(bench: Any) -> None:
    """From the route to the commit: what a recorder sees, in its order."""
    b = bench().start()
    b.append(1, KEY_SEQ="7", __SHARDINGKEY="k")
    b.returns()
    b.advance(10_000)
    kinds = [seen.kind for seen in b.seen]
    assert kinds[:7] == [
        Kind.JOIN,
        Kind.ASSIGN,
        Kind.LOCK,
        Kind.FETCH_OFFSET,
        Kind.ADD,
        Kind.FETCH_OFFSET,
        Kind.PULL,
    ]
    lane = {"client_id": "c1", "group": "g", "topic": "t", "broker": "b0", "queue_id": 0}
    assert b.of(Kind.LOCK)[0].rows == [lane]
    assert b.of(Kind.LOCK)[0].end_rows == [{"outcome": Outcome.OK}]
    assert b.of(Kind.FETCH_OFFSET)[0].fields == lane
    assert b.of(Kind.FETCH_OFFSET)[0].end_fields == {"code": 22, "value": -1}
    assert b.of(Kind.ADD)[0].fields == {**lane, "incarnation": "c1#1", "value": 0}
    assert b.of(Kind.FETCH_OFFSET)[1].fields == {**lane, "incarnation": "c1#1"}
    assert b.of(Kind.DELIVER)[0].rows == [
        {
            **lane,
            "incarnation": "c1#1",
            "queue_offset": 0,
            "message_id": "m0-0",
            "origin_id": None,
            "sharding_key": "k",
            "key_seq": 7,
            "reconsume_times": 0,
            "attempt": 1,
            "body_hash": 3685223346,
            "props_hash": 0,
            "tags": None,
            "delay_level": 0,
        }
    ]
    assert b.of(Kind.DELIVER)[0].outcome is Outcome.SUCCESS
    commits = b.of(Kind.COMMIT)
    assert [(c.fields["value"], c.fields.get("view"), c.outcome) for c in commits] == [
        (1, None, Outcome.SENT)
    ]


def test_the_recorder_is_told_before_the_call_and_before_what_follows_it(bench: Any) -> None:
    b = bench().start()
    b.append(2)
    kinds = [type(e) for e in b.effects if isinstance(e, CallListener) or is_delivery(e)]
    assert kinds == [Begin, CallListener]
    after = b.returns()
    assert isinstance(after[0], End)
    assert [type(e) for e in after if isinstance(e, CallListener) or is_delivery(e)] == [
        Begin,
        CallListener,
    ]


def is_delivery(effect: object) -> bool:
    return isinstance(effect, Begin) and effect.kind is Kind.DELIVER


def test_messages_come_in_offset_order_one_call_at_a_time(bench: Any) -> None:
    b = bench().start()
    b.append(4)
    seen = []
    while b.calls:
        seen += b.offsets
        b.returns()
    assert seen == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("batch", "first"), [(1, [0]), (2, [0, 1]), (3, [0, 1, 2]), (1001, [0, 1, 2])]
)
def test_batch_is_at_most_the_configured_size(bench: Any, batch: int, first: list[int]) -> None:
    b = bench(batch=batch).start()
    b.hold.add(RequestCode.PULL_MESSAGE)
    b.append(3)
    b.advance(0)
    b.answer_held(RequestCode.PULL_MESSAGE)
    assert b.offsets == first


def test_suspended_batch_comes_again_whole(bench: Any) -> None:
    b = bench(batch=2).start()
    b.append(3)
    b.returns(Outcome.SUSPEND)
    b.advance(1000)
    assert b.offsets == [0, 1]
    assert [row["reconsume_times"] for row in b.of(Kind.DELIVER)[-1].rows] == [1, 1]
    assert b.call.delivery == [2, 2]


def test_threads_bound_the_calls_and_lanes_wait_in_line(bench: Any) -> None:
    """Two threads, three lanes: the third lane gets the first thread that is given up."""
    b = bench(queues=3, threads=2).start()
    for queue_id in (2, 0, 1):
        b.append(1, queue_id)
    assert [call.lane.queue_id for call in b.calls] == [2, 0]
    b.returns(at=1)
    assert [call.lane.queue_id for call in b.calls] == [2, 1]


def test_a_suspended_lane_gives_up_its_thread(bench: Any) -> None:
    b = bench(queues=2, threads=1).start()
    b.append(1, 0)
    b.append(1, 1)
    assert b.call.lane == Lane("g", "t", "b0", 0)
    b.returns(Outcome.SUSPEND)
    assert b.call.lane == Lane("g", "t", "b0", 1)


@pytest.mark.parametrize(("age_ms", "starts"), [(30_000, True), (30_001, False)])
def test_lease_of_exactly_the_limit_is_still_valid(bench: Any, age_ms: int, starts: bool) -> None:
    """Between two calls; no renewal is answered meanwhile."""
    b = bench().start()
    b.append(2)
    b.hold.add(LOCK)
    b.advance(age_ms)
    b.returns()
    assert b.offsets == ([1] if starts else [])


@pytest.mark.parametrize(("age_ms", "starts"), [(30_000, True), (30_001, False)])
def test_lease_limit_at_entry(bench: Any, age_ms: int, starts: bool) -> None:
    b = bench().start()
    b.hold.add(LOCK)
    b.advance(age_ms)
    b.append(1)
    assert b.offsets == ([0] if starts else [])


def test_without_lease_at_entry_it_asks_after_100_ms_and_starts_10_ms_later(bench: Any) -> None:
    b = bench(lock_interval_ms=10**9, lock_first_ms=10**9).start()
    b.advance(30_001)
    b.append(1)
    asked = len(b.requests(LOCK))
    b.advance(99)
    assert len(b.requests(LOCK)) == asked
    b.advance(1)
    assert len(b.requests(LOCK)) == asked + 1
    b.advance(9)
    assert b.offsets == []
    b.advance(1)
    assert b.offsets == [0]


def test_without_lease_in_the_loop_it_asks_after_10_ms_and_refused_after_3_s(bench: Any) -> None:
    b = bench(lock_interval_ms=10**9, lock_first_ms=10**9).start()
    b.append(2)
    b.advance(30_001)
    b.refused = set(b.consumer.lanes)
    b.returns()
    b.advance(10)
    assert b.of(Kind.LOCK)[-1].end_rows == [{"outcome": Outcome.REFUSED}]
    b.refused = set()
    b.advance(2_999)
    assert b.offsets == []
    b.advance(1)  # at entry again, without a lease: 100 ms, a grant, 10 ms
    assert b.offsets == []
    b.advance(110)
    assert b.offsets == [1]


def test_after_the_cap_the_lane_gets_in_line_again(bench: Any) -> None:
    """60 s in one lane are allowed; after them another lane is served first."""
    b = bench(queues=2, threads=1).start()
    b.append(3, 0)
    b.append(1, 1)
    b.advance(60_000)
    b.returns()
    assert (b.call.lane.queue_id, b.offsets) == (0, [1])
    b.advance(1)
    b.returns()
    assert b.call.lane.queue_id == 1
    b.returns()
    assert b.calls == []
    b.advance(10)
    assert (b.call.lane.queue_id, b.offsets) == (0, [2])


def test_a_call_may_end_after_its_lane_was_taken_away(one_message: Any) -> None:
    """The call goes on, its end is told, no further call starts, and the offset does not move."""
    b = one_message
    b.take_away()
    assert b.of(Kind.DROP)[0].fields["detail"] == "assigned to somebody else"
    b.returns()
    assert b.of(Kind.DELIVER)[0].outcome is Outcome.SUCCESS
    assert b.calls == []
    assert b.commits() == []


def test_an_unknown_call_changes_nothing(bench: Any) -> None:
    b = bench().start()
    assert b.give(ListenerReturned(99, Outcome.SUCCESS)) == []


def test_attempts_count_over_incarnations_and_retries_do_not(one_message: Any) -> None:
    """A lane dropped and assigned again counts its retries from 0; the client's own count goes on."""
    b = one_message
    b.returns(Outcome.SUSPEND, suspend_ms=30_000)
    b.take_away()
    b.members = ["c1"]
    b.notify()
    rows = [seen.rows[0] for seen in b.of(Kind.DELIVER)]
    assert [row["incarnation"] for row in rows] == ["c1#1", "c1#2"]
    assert [row["reconsume_times"] for row in rows] == [0, 0]
    assert [row["attempt"] for row in rows] == [1, 2]


def test_losing_and_regaining_the_lease_keeps_the_incarnation(one_message: Any) -> None:
    b = one_message
    b.returns(Outcome.SUSPEND, suspend_ms=30_000)
    b.refused = set(b.consumer.lanes)
    b.advance(20_000)
    assert b.of(Kind.LOCK)[-1].end_rows == [{"outcome": Outcome.REFUSED}]
    b.refused = set()
    b.advance(20_000)
    assert b.offsets == [0]
    last = b.of(Kind.DELIVER)[-1].rows[0]
    assert (last["incarnation"], last["reconsume_times"]) == ("c1#1", 1)
    assert len(b.of(Kind.ADD)) == 1


def test_commit_mode_is_told_at_the_end(one_message: Any) -> None:
    one_message.returns(manual=True)
    assert one_message.of(Kind.DELIVER)[0].end_fields["commit_mode"] is CommitMode.MANUAL
