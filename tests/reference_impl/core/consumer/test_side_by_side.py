"""Consumers that work on several messages of one lane at a time: concurrent, key-ordered, broadcast."""

from __future__ import annotations

from typing import Any

import pytest

from reference_impl.core.consumer import (
    BroadcastConsumer,
    ConcurrentConsumer,
    ConsumerConfig,
    KeyOrderedConsumer,
    OrderlyConsumer,
    consumer_class,
)
from reference_impl.core.consumer.pulling import span_of
from reference_impl.core.consumer.unfinished_queue import UnfinishedQueue
from reference_impl.core.io import ListenerReturned, Stopped
from reference_impl.protocol.codes import RequestCode, ResponseCode
from reference_impl.protocol.headers import SendBackHeader
from reference_impl.protocol.message import StoredMessage
from specs.errors import UsageError
from specs.vocabulary import Kind, Lane, Outcome, Queue

LANE = Queue("t", "b0", 0)
BACK = RequestCode.CONSUMER_SEND_MSG_BACK
SEND = RequestCode.SEND_MESSAGE_V2


def concurrent(bench: Any, **config: Any) -> Any:
    return bench(ConcurrentConsumer, mode="concurrent", **config).start()


def keyed(bench: Any, **config: Any) -> Any:
    return bench(KeyOrderedConsumer, mode="key_ordered", **config).start()


def broadcast(bench: Any, **config: Any) -> Any:
    return bench(
        BroadcastConsumer, mode="concurrent", message_model="BROADCASTING", **config
    ).start()


def running(b: Any) -> list[list[int]]:
    """The offsets of each open call."""
    return [[message.queue_offset for message in call.messages] for call in b.calls]


def put(b: Any, *keys: str | None) -> None:
    """One message for each key, all of one pull's answer if the consumer is not waiting."""
    for key in keys:
        b.append(1, **({} if key is None else {"__SHARDINGKEY": key}))


def stored(b: Any) -> int:
    """What the next persisting says."""
    b.advance(b.config.persist_first_ms)
    return b.stored.get(LANE, -1)


# ---------------------------------------------------------------- which consumer


@pytest.mark.parametrize(
    ("mode", "model", "expected"),
    [
        ("orderly", "CLUSTERING", OrderlyConsumer),
        ("concurrent", "CLUSTERING", ConcurrentConsumer),
        ("key_ordered", "CLUSTERING", KeyOrderedConsumer),
        ("concurrent", "BROADCASTING", BroadcastConsumer),
    ],
)
def test_the_configuration_names_the_consumer(mode: str, model: str, expected: type) -> None:
    assert (
        consumer_class(ConsumerConfig("c", "g", {}, ("ns",), mode=mode, message_model=model))
        is expected
    )


@pytest.mark.parametrize(
    ("mode", "model", "said"),
    [
        ("orderly", "BROADCASTING", "a broadcast consumer works in the mode concurrent only"),
        ("wild", "CLUSTERING", "mode is 'wild'"),
        ("orderly", "NOWHERE", "the model is 'NOWHERE'"),
    ],
)
def test_what_is_not_built_is_said(mode: str, model: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        ConsumerConfig("c", "g", {}, ("ns",), mode=mode, message_model=model)


def test_without_a_limit_a_concurrent_consumer_retries_sixteen_times() -> None:
    def limit(mode: str, most: int) -> int:
        return ConsumerConfig("c", "g", {}, ("ns",), mode=mode, max_reconsume_times=most).limit

    assert [limit("concurrent", -1), limit("concurrent", 2), limit("key_ordered", 2)] == [16, 2, 2]
    assert limit("key_ordered", -1) == limit("orderly", -1) == 2**31 - 1


# ---------------------------------------------------------------- no lease, threads, back-pressure


def test_no_lease_is_asked_for_and_none_given_back(bench: Any) -> None:
    b = concurrent(bench, queues=2)
    b.append(1)
    b.advance(60_000)
    b.take_away()
    b.returns()
    b.shut_down()
    assert b.of(Kind.LOCK) == b.of(Kind.UNLOCK) == []
    assert [seen.fields["value"] for seen in b.of(Kind.ADD)] == [0, 0]


def test_as_many_calls_run_as_there_are_threads(bench: Any) -> None:
    b = concurrent(bench, threads=2)
    b.append(4)
    assert running(b) == [[0], [1]]
    b.returns(at=1)
    assert running(b) == [[0], [2]]


def test_a_batch_holds_messages_of_one_pull(bench: Any) -> None:
    b = bench(ConcurrentConsumer, mode="concurrent", batch=2)
    b.append(5)
    b.start()
    assert running(b) == [[0, 1], [2, 3], [4]]


def test_a_lane_with_too_many_unfinished_messages_is_not_pulled(bench: Any) -> None:
    b = concurrent(bench, pull_threshold=2)
    b.append(1)
    b.append(1)
    b.append(1)
    b.append(1)
    assert running(b) == [[0], [1], [2]]
    b.returns()
    b.advance(50)
    assert running(b) == [[1], [2], [3]]


def test_a_lane_whose_unfinished_messages_lie_far_apart_is_not_pulled(bench: Any) -> None:
    b = concurrent(bench, span_max=2)
    for _ in range(6):
        b.append(1)
        if len(b.calls) > 1:
            b.returns(at=1)
    assert running(b) == [[0]]
    assert [seen.fields["queue_offset"] for seen in b.of(Kind.PULL)] == [0, 1, 2, 3]
    b.advance(50)
    assert running(b) == [[0], [4], [5]]


# ---------------------------------------------------------------- offsets


def test_what_is_stored_is_the_smallest_unfinished_offset(bench: Any) -> None:
    b = concurrent(bench)
    b.append(3)
    b.returns(at=1)
    b.returns(at=1)
    assert stored(b) == 0
    b.returns()
    assert stored(b) == 3


def test_a_call_of_a_dropped_lane_moves_nothing(bench: Any) -> None:
    b = concurrent(bench)
    b.append(2)
    b.returns()
    b.take_away()
    assert b.stored[LANE] == 1
    b.returns()
    b.advance(20_000)
    assert b.stored[LANE] == 1
    assert b.of(Kind.DROP)[0].fields["queue_id"] == 0


def test_a_lane_that_comes_back_is_taken_at_once_whatever_still_runs(bench: Any) -> None:
    b = concurrent(bench)
    b.append(1)
    b.take_away()
    b.members = ["c1"]
    b.notify()
    assert [seen.fields["value"] for seen in b.of(Kind.ADD)] == [0, 0]
    assert running(b) == [[0], [0]]
    b.returns()
    assert stored(b) == -1
    b.returns()
    assert stored(b) == 1


@pytest.mark.parametrize("make", [concurrent, keyed])
def test_a_shutdown_waits_for_calls_and_stores_what_they_finished(bench: Any, make: Any) -> None:
    b = make(bench, threads=1)
    put(b, "k", "k")
    b.shut_down()
    assert running(b) == [[0]]
    b.returns()
    assert running(b) == []
    assert b.stored[LANE] == 1
    assert isinstance(b.effects[-1], Stopped)


def test_a_shutdown_waits_no_longer_than_its_time(bench: Any) -> None:
    b = concurrent(bench)
    b.append(1)
    b.shut_down()
    b.advance(5_000)
    assert b.of(Kind.DELIVER)[0].outcome is Outcome.CUT
    assert isinstance(b.effects[-1], Stopped)


def test_messages_that_are_held_are_not_given_out_twice() -> None:
    pq = UnfinishedQueue(lane=Lane("g", "t", "b0", 0), serial=1, incarnation="c#1", start=0, row={})
    assert (span_of(pq.held), pq.finish([])) == (0, -1)
    messages = [StoredMessage("t", 0, offset, offset, b"", {}) for offset in (0, 1, 2)]
    assert pq.admit([messages[1], messages[0]]) == messages[:2]
    assert pq.admit(messages) == messages[2:]
    assert (span_of(pq.held), pq.finish(messages[:1]), pq.finish(messages)) == (2, 1, 3)


# ---------------------------------------------------------------- sending back


def test_a_message_that_failed_is_sent_back_and_then_finished(bench: Any) -> None:
    b = concurrent(bench, max_reconsume_times=3)
    b.append(2)
    b.hold.add(BACK)
    b.returns(Outcome.SUSPEND)
    b.returns()
    assert stored(b) == 0
    header = SendBackHeader.from_ext(b.held[0].command.ext)
    assert (header.offset, header.group, header.delay_level, header.max_reconsume_times) == (
        0,
        "g",
        0,
        3,
    )
    assert (header.origin_msg_id, header.origin_topic) == ("m0-0", "t")
    b.answer_held(BACK)
    assert stored(b) == 2
    (seen,) = b.of(Kind.SEND_BACK)
    assert (seen.outcome, seen.fields["delay_level"], seen.fields["reconsume_times"]) == (
        Outcome.OK,
        3,
        0,
    )
    assert seen.fields["message_id"] == "m0-0"


@pytest.mark.parametrize("outcome", [Outcome.NULL, Outcome.THREW])
def test_null_and_a_throw_send_back_as_well(bench: Any, outcome: Outcome) -> None:
    b = concurrent(bench)
    b.append(1)
    b.returns(outcome)
    assert len(b.requests(BACK)) == 1


def test_the_listener_may_name_the_level(bench: Any) -> None:
    b = concurrent(bench)
    b.append(1)
    b.give(ListenerReturned(b.calls.pop().call_id, Outcome.SUSPEND, delay_level=7))
    assert b.of(Kind.SEND_BACK)[0].fields["delay_level"] == 7
    assert SendBackHeader.from_ext(b.requests(BACK)[0].command.ext).delay_level == 7


@pytest.mark.parametrize("how", ["refused", "timeout"])
def test_what_could_not_be_sent_back_comes_again_here_after_5_s(bench: Any, how: str) -> None:
    b = concurrent(bench)
    b.append(1)
    if how == "refused":
        b.codes[BACK] = [ResponseCode.SYSTEM_ERROR]
        b.returns(Outcome.SUSPEND)
    else:
        b.hold.add(BACK)
        b.returns(Outcome.SUSPEND)
        b.fail_held(BACK)
    b.advance(4_999)
    assert running(b) == []
    b.advance(1)
    assert running(b) == [[0]]
    assert [seen.rows[0]["reconsume_times"] for seen in b.of(Kind.DELIVER)] == [0, 1]
    assert stored(b) == -1
    b.returns(Outcome.SUSPEND)
    assert [seen.fields["reconsume_times"] for seen in b.of(Kind.SEND_BACK)] == [0, 0]
    assert stored(b) == 1


def test_of_a_batch_only_what_was_not_sent_back_comes_again(bench: Any) -> None:
    b = bench(ConcurrentConsumer, mode="concurrent", batch=3)
    b.append(3)
    b.start()
    b.codes[BACK] = [0, ResponseCode.SYSTEM_ERROR, 0]
    b.returns(Outcome.SUSPEND)
    assert stored(b) == 1
    assert running(b) == [[1]]


def test_a_retry_here_of_a_dropped_lane_is_forgotten(bench: Any) -> None:
    b = concurrent(bench)
    b.append(1)
    b.codes[BACK] = [ResponseCode.SYSTEM_ERROR]
    b.returns(Outcome.SUSPEND)
    b.take_away()
    b.advance(5_000)
    assert running(b) == []


# ---------------------------------------------------------------- keys


def test_a_key_has_one_call_and_other_keys_go_on(bench: Any) -> None:
    b = keyed(bench)
    put(b, "k1", "k1", "k2", None, None)
    assert running(b) == [[0], [2], [3], [4]]
    b.returns()
    assert running(b) == [[2], [3], [4], [1]]


def test_a_key_that_failed_waits_alone_and_comes_again_in_order(bench: Any) -> None:
    b = keyed(bench, threads=1)
    put(b, "k1", "k1", "k2")
    b.returns(Outcome.SUSPEND, suspend_ms=200)
    assert running(b) == [[2]]
    b.returns()
    b.advance(199)
    assert running(b) == []
    b.advance(1)
    assert running(b) == [[0]]
    b.returns()
    assert running(b) == [[1]]
    seen = b.of(Kind.DELIVER)
    assert [each.rows[0]["reconsume_times"] for each in seen] == [0, 0, 1, 0]
    assert seen[0].end_fields["suspend_ms"] == 200


def test_a_message_without_a_key_fails_alone(bench: Any) -> None:
    b = keyed(bench)
    put(b, None, None)
    b.returns(Outcome.THREW)
    b.returns()
    b.advance(1_000)
    assert running(b) == [[0]]


def test_a_batch_holds_messages_of_one_key(bench: Any) -> None:
    b = bench(KeyOrderedConsumer, mode="key_ordered", batch=2)
    put(b, "k1", "k2", "k1", "k1", None)
    b.start()
    assert running(b) == [[0, 2], [1], [4]]
    b.returns()
    assert running(b) == [[1], [4], [3]]


def test_a_message_that_is_exhausted_is_given_up_and_its_key_goes_on(bench: Any) -> None:
    b = keyed(bench, max_reconsume_times=0)
    put(b, "k1", "k1")
    b.returns(Outcome.SUSPEND)
    assert running(b) == [[1]]
    assert b.of(Kind.DEAD_LETTER)[0].outcome is Outcome.OK
    assert stored(b) == 1


def test_a_dead_letter_that_failed_comes_again(bench: Any) -> None:
    b = keyed(bench, max_reconsume_times=0)
    put(b, "k1", "k1")
    b.hold.add(SEND)
    b.returns(Outcome.SUSPEND)
    b.fail_held(SEND)
    assert running(b) == []
    b.advance(1_000)
    assert running(b) == [[0]]


# ---------------------------------------------------------------- everybody gets everything


def test_a_broadcast_consumer_takes_all_queues_and_asks_nobody(bench: Any) -> None:
    b = broadcast(bench, queues=2)
    b.members = ["a0", "c1"]
    b.append(1)
    b.append(1, queue_id=1)
    assert running(b) == [[0], [0]]
    b.returns()
    b.returns()
    b.advance(60_000)
    asked = {request.command.code for request in b.effects if hasattr(request, "timeout_ms")}
    codes = RequestCode
    assert asked == {codes.GET_ROUTEINFO_BY_TOPIC, codes.HEART_BEAT, codes.PULL_MESSAGE}
    assert b.stored == {}
    assert b.consumer.file == {LANE: 1, Queue("t", "b0", 1): 1}
    assert {seen.fields["value"] for seen in b.of(Kind.PERSIST)} == {1}


def test_a_broadcast_consumer_goes_on_where_its_own_file_says(bench: Any) -> None:
    b = bench(BroadcastConsumer, mode="concurrent", message_model="BROADCASTING")
    b.append(3)
    b.stored[LANE] = 3
    b.consumer.file[LANE] = 1
    b.start()
    assert running(b) == [[1], [2]]


def test_what_fails_in_a_broadcast_is_dropped(bench: Any) -> None:
    b = broadcast(bench)
    b.append(1)
    b.returns(Outcome.SUSPEND)
    b.advance(10_000)
    assert b.consumer.file == {LANE: 1}
    assert b.requests(BACK) == []
    assert running(b) == []
