"""Giving up a message: when, with which copy, and what a failure means."""

from __future__ import annotations

from typing import Any

import pytest

from reference_impl.protocol.codes import RequestCode
from reference_impl.protocol.message import unpack_properties
from specs.vocabulary import Kind, Outcome, Queue

SEND = RequestCode.SEND_MESSAGE_V2
LANE = Queue("t", "b0", 0)


def fail_until_given_up(b: Any, tries: int = 50) -> int:
    """Suspends the first message until another one comes; how often it was delivered."""
    count = 0
    while b.offsets == [0] and count < tries:
        count += 1
        b.returns(Outcome.SUSPEND, suspend_ms=10)
        b.advance(10)
    return count


@pytest.mark.parametrize(("limit", "deliveries"), [(0, 1), (1, 2), (3, 4), (16, 17)])
def test_a_limit_of_n_gives_n_plus_1_deliveries_and_one_copy(
    bench: Any, limit: int, deliveries: int
) -> None:
    b = bench(max_reconsume_times=limit).start()
    b.append(2)
    assert fail_until_given_up(b) == deliveries
    assert b.offsets == [1]
    rows = [seen.rows[0] for seen in b.of(Kind.DELIVER)[:-1]]
    assert [row["reconsume_times"] for row in rows] == list(range(deliveries))
    (seen,) = b.of(Kind.DEAD_LETTER)
    assert seen.outcome is Outcome.OK
    assert seen.fields == {
        "client_id": "c1",
        "group": "g",
        "topic": "t",
        "broker": "b0",
        "queue_id": 0,
        "incarnation": "c1#1",
        "queue_offset": 0,
        "message_id": "m0-0",
        "sharding_key": None,
        "reconsume_times": limit,
        "attempt": 1,
    }


def test_no_limit_never_gives_up(bench: Any) -> None:
    b = bench().start()
    b.append(2)
    assert fail_until_given_up(b, 60) == 60
    assert b.sent == []


def test_the_copy(bench: Any) -> None:
    """One retry more than it has had, beyond the limit; everything else as it was, and where it came from."""
    b = bench(max_reconsume_times=2).start()
    b.append(1, KEYS="k", TAGS="a", TRAN_MSG="true", RECONSUME_TIME="1")
    fail_until_given_up(b)
    b.advance(0)
    (header,) = b.sent
    assert (header.topic, header.queue_id, header.reconsume_times, header.max_reconsume_times) == (
        "%RETRY%g",
        0,
        3,
        2,
    )
    assert header.producer_group == "CLIENT_INNER_PRODUCER"
    assert unpack_properties(header.properties) == {
        "UNIQ_KEY": "m0-0",
        "KEYS": "k",
        "TAGS": "a",
        "ORIGIN_MESSAGE_ID": "m0-0",
        "RETRY_TOPIC": "t",
        "DELAY": "5",
    }
    assert b.requests(SEND)[0].command.body == b"body"


def test_an_origin_that_the_message_names_is_kept(bench: Any) -> None:
    b = bench(max_reconsume_times=0).start()
    b.append(1, ORIGIN_MESSAGE_ID="first")
    b.returns(Outcome.THREW)
    assert unpack_properties(b.sent[0].properties)["ORIGIN_MESSAGE_ID"] == "first"


@pytest.mark.parametrize("code", [10, 11, 12])
def test_stored_with_less_safety_is_stored(bench: Any, code: int) -> None:
    b = bench(max_reconsume_times=0).start()
    b.append(2)
    b.codes[SEND] = [code]
    b.returns(Outcome.SUSPEND)
    assert b.offsets == [1]


FAILED = [
    # scripted codes, or a reason; tries; the outcomes of the tries
    ([13], None, 1),
    ([2, 1, 14], None, 3),
    ([16, 17, 13], None, 3),
    ([], "timeout", 1),
    ([], "unreachable", 3),
    ([], "closed", 3),
]


@pytest.mark.parametrize(("codes", "reason", "tries"), FAILED)
def test_a_failed_send_means_another_delivery(
    bench: Any, codes: list[int], reason: str | None, tries: int
) -> None:
    """The message stays in its place, counted once more, after the suspend time; then it is sent again."""
    b = bench(max_reconsume_times=0).start()
    b.append(2)
    b.codes[SEND] = list(codes)
    if reason:
        b.hold.add(SEND)
    b.returns(Outcome.SUSPEND, suspend_ms=500)
    if reason:
        for _ in range(tries):
            b.fail_held(SEND, reason, keep=True)
    sends = b.of(Kind.DEAD_LETTER)
    assert [seen.fields["attempt"] for seen in sends] == list(range(1, tries + 1))
    assert all(seen.outcome is not Outcome.OK for seen in sends)
    assert b.offsets == []
    b.hold.clear()
    b.advance(500)
    assert b.offsets == [0]
    assert b.of(Kind.DELIVER)[-1].rows[0]["reconsume_times"] == 1
    b.returns(Outcome.SUSPEND)
    assert b.of(Kind.DEAD_LETTER)[-1].fields["attempt"] == 1
    assert b.sent[-1].reconsume_times == 2
    assert b.offsets == [1]


def test_the_lane_waits_for_the_answer(bench: Any) -> None:
    """Neither the next message nor the release overtakes the copy."""
    b = bench(max_reconsume_times=0).start()
    b.append(2)
    b.hold.add(SEND)
    b.returns(Outcome.SUSPEND)
    assert b.calls == []
    b.take_away()
    assert b.unlocked == []
    b.answer_held(SEND)
    assert b.unlocked == [LANE]


def test_a_batch_is_kept_whole_when_one_message_is_not_exhausted(bench: Any) -> None:
    """The exhausted one is sent; since the whole batch stays it is delivered again, and not sent again."""
    b = bench(max_reconsume_times=1, batch=2).start()
    b.append(1)
    b.append(1)
    b.returns(Outcome.SUSPEND, suspend_ms=10)
    b.advance(10)
    assert b.offsets == [0, 1]
    b.returns(Outcome.SUSPEND, suspend_ms=10)
    b.advance(10)
    assert [seen.fields["queue_offset"] for seen in b.of(Kind.DEAD_LETTER)] == [0]
    assert b.offsets == [0, 1]
    assert [row["reconsume_times"] for row in b.of(Kind.DELIVER)[-1].rows] == [1, 1]
    b.returns(Outcome.SUSPEND, suspend_ms=10)
    assert [seen.fields["queue_offset"] for seen in b.of(Kind.DEAD_LETTER)] == [0, 1]
    assert b.consumer.lanes[LANE].offset == 2


def test_what_a_rollback_takes_back_is_given_up_again(bench: Any) -> None:
    """In manual mode nothing that was taken is finished before a COMMIT: the dead letter is sent once more."""
    b = bench(max_reconsume_times=1, batch=2).start()
    b.append(1)
    b.append(1)
    b.returns(Outcome.SUSPEND, suspend_ms=10)
    b.advance(10)
    b.returns(Outcome.SUSPEND, suspend_ms=10, manual=True)
    b.advance(10)
    b.returns(Outcome.ROLLBACK, suspend_ms=10, manual=True)
    b.advance(10)
    b.returns(Outcome.SUSPEND, suspend_ms=10, manual=True)
    assert [seen.fields["queue_offset"] for seen in b.of(Kind.DEAD_LETTER)] == [0, 0, 1]


def test_a_batch_of_which_every_message_was_given_up_in_turn_is_over(bench: Any) -> None:
    """The first dead letter fails and the second arrives; then only the first is sent, and the lane goes on."""
    b = bench(max_reconsume_times=0, batch=2).start()
    b.codes[SEND] = [13]
    b.append(2)
    b.append(1)
    b.returns(Outcome.SUSPEND, suspend_ms=10)
    b.advance(10)
    first = [seen.fields["queue_offset"] for seen in b.of(Kind.DEAD_LETTER)]
    b.returns(Outcome.SUSPEND, suspend_ms=10)
    assert (first, [seen.fields["queue_offset"] for seen in b.of(Kind.DEAD_LETTER)]) == (
        [0, 1],
        [0, 1, 0],
    )
    assert b.offsets == [2]


def test_other_brokers_are_tried_in_turn(bench: Any) -> None:
    b = bench(max_reconsume_times=0)
    b.queues["%RETRY%g"] = 1
    b.start()
    pq = b.consumer.lanes[LANE]
    assert [b.consumer.dead_letters._broker_for(pq, attempt) for attempt in (1, 2, 3)] == [
        "b0",
        "b0",
        "b0",
    ]
