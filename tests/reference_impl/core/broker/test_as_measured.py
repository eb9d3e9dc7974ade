"""The answers of real 4.9.7 and 5.4.0 brokers, measured with raw requests: ours are the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reference_impl.core.broker.dialect import DIALECTS, dialect
from reference_impl.protocol.codes import RequestCode
from reference_impl.protocol.headers import PullHeader, SendBackHeader
from specs.errors import UsageError

BOTH = pytest.mark.parametrize("line", ["4.9", "5.x"])


def by_line(on_49: Any, on_5: Any) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("line", "expected"), [("4.9", on_49), ("5.x", on_5)])


def test_an_unknown_dialect_is_a_wrong_use() -> None:
    with pytest.raises(UsageError, match=r"known are 4\.9, 5\.x"):
        dialect("6")
    assert dialect("5.x") is DIALECTS["5.x"]


# ------------------------------------------------------------------ send


@by_line(
    {"msgId", "queueId", "queueOffset", "MSG_REGION", "TRACE_ON"},
    {"msgId", "queueId", "queueOffset", "MSG_REGION", "TRACE_ON", "transactionId"},
)
def test_a_send_is_answered_with(make_wire: Any, line: str, expected: set[str]) -> None:
    answer = make_wire(line).send()
    assert answer.code == 0
    assert set(answer.ext) == expected


@by_line(False, True)
def test_a_unique_key_is_added(make_wire: Any, line: str, expected: bool) -> None:
    wire = make_wire(line)
    wire.send(b"one")
    wire.send(b"two", properties={"UNIQ_KEY": "mine"})
    first, second = wire.messages("orders")
    assert (first.message_id is not None) is expected
    assert second.message_id == "mine"


@by_line(1, 29)
def test_send_to_a_queue_that_is_not_there(make_wire: Any, line: str, expected: int) -> None:
    assert make_wire(line).send(queue_id=9).code == expected


@BOTH
def test_send_without_a_queue_gets_one(make_wire: Any, line: str) -> None:
    wire = make_wire(line)
    queues = {int(wire.send(queue_id=-1).ext["queueId"]) for _ in range(4)}
    assert queues == {0, 1, 2, 3}


# ------------------------------------------------------------------ pull


@BOTH
def test_pull_of_a_group_never_seen_with_its_own_subscription(make_wire: Any, line: str) -> None:
    wire = make_wire(line)
    wire.send()
    assert wire.pull(0, group="never-seen").code == 0


@BOTH
def test_pull_without_a_subscription(make_wire: Any, line: str) -> None:
    assert make_wire(line).pull(0, sys_flag=0).code == 24


@BOTH
def test_pull_beyond_the_end(make_wire: Any, line: str) -> None:
    wire = make_wire(line)
    for _ in range(3):
        wire.send()
    answer = wire.pull(5)
    assert (answer.code, answer.ext["nextBeginOffset"]) == (21, "3")


@by_line(1, 29)
def test_pull_of_a_queue_that_is_not_there(make_wire: Any, line: str, expected: int) -> None:
    assert make_wire(line).pull(0, queue_id=7).code == expected


@BOTH
def test_pull_of_a_topic_that_is_not_there(make_wire: Any, line: str) -> None:
    assert make_wire(line).pull(0, topic="nowhere").code == 17


@BOTH
def test_a_parked_pull_is_woken_by_a_send(make_wire: Any, line: str) -> None:
    wire = make_wire(line)
    opaque = wire.park(0)
    assert opaque not in wire.answers
    wire.send()
    assert wire.answers[opaque].code == 0


# ------------------------------------------------------------------ lock


@BOTH
def test_a_second_client_gets_the_rest(make_wire: Any, line: str) -> None:
    wire = make_wire(line)
    assert wire.lock("A", 0, 1) == [0, 1]
    assert wire.lock("B", 0, 1, 2, 3) == [2, 3]
    assert wire.lock("B", 0) == []


@BOTH
def test_an_empty_grant_is_a_success_with_an_empty_set(make_wire: Any, line: str) -> None:
    wire = make_wire(line)
    wire.lock("A", 0)
    body = {
        "consumerGroup": "billing",
        "clientId": "B",
        "mqSet": [{"topic": "orders", "brokerName": "b0", "queueId": 0}],
    }
    answer = wire.call(RequestCode.LOCK_BATCH_MQ, body=json.dumps(body).encode())
    assert (answer.code, json.loads(answer.body)) == (0, {"lockOKMQSet": []})


@BOTH
@pytest.mark.parametrize("other", [{"group": "other"}, {"topic": "nowhere"}])
def test_other_group_or_unknown_topic_is_granted(
    make_wire: Any, line: str, other: dict[str, str]
) -> None:
    wire = make_wire(line)
    wire.lock("A", 0)
    assert wire.lock("B", 0, **other) == [0]
    assert wire.lock("B", 77) == [77]


@BOTH
def test_unlock_by_a_stranger_and_by_the_owner(make_wire: Any, line: str) -> None:
    wire = make_wire(line)
    wire.lock("A", 0)
    wire.unlock("B", 0)
    assert wire.lock("B", 0) == []
    wire.unlock("A", 0)
    assert wire.lock("B", 0) == [0]


@BOTH
def test_expiry_to_the_millisecond(make_wire: Any, line: str) -> None:
    wire = make_wire(line, lease_ms=3_000)
    wire.lock("A", 0)
    wire.pass_ms(3_000)
    assert wire.lock("B", 0) == []
    wire.pass_ms(1)
    assert wire.lock("B", 0) == [0]


@BOTH
def test_a_restart_empties_the_lock_table(make_wire: Any, line: str) -> None:
    wire = make_wire(line)
    wire.lock("A", 0)
    wire.boot()
    assert wire.lock("B", 0) == [0]


# ------------------------------------------------------------------ consumer offsets


@BOTH
def test_nothing_stored_and_the_first_message_still_there(make_wire: Any, line: str) -> None:
    wire = make_wire(line)
    wire.send()
    assert wire.fetch() == (0, 0)


@by_line((0, 0), (22, None))
def test_nothing_stored_and_the_queue_empty(
    make_wire: Any, line: str, expected: tuple[int, int | None]
) -> None:
    assert make_wire(line).fetch() == expected


@by_line((0, 0), (22, None))
def test_nothing_stored_and_zero_not_wanted(
    make_wire: Any, line: str, expected: tuple[int, int | None]
) -> None:
    wire = make_wire(line)
    wire.send()
    assert wire.fetch(zero=False) == expected


@BOTH
def test_nothing_stored_and_the_first_message_gone(make_wire: Any, line: str) -> None:
    wire = make_wire(line)
    wire.send()
    wire.store.trim("orders", 0, 1)
    assert wire.fetch() == (22, None)


@BOTH
def test_commits_are_not_fenced_and_may_be_anything(make_wire: Any, line: str) -> None:
    wire = make_wire(line)
    wire.join("A", "c1")
    wire.send()
    wire.lock("A", 0)
    for offset, then in ((120, 120), (7, 7), (99_999, 99_999), (-5, 0)):
        assert wire.commit(offset, conn="c2").code == 0
        assert wire.fetch() == (0, then)


@by_line((0, 0, 0), (26, 17, 0))
def test_commits_for_what_is_not_there(
    make_wire: Any, line: str, expected: tuple[int, int, int]
) -> None:
    """Unknown group, unknown topic, unknown queue."""
    wire = make_wire(line)
    wire.join("A", "c1")
    codes = (
        wire.commit(1, group="nope").code,
        wire.commit(1, topic="nope").code,
        wire.commit(1, queue_id=77).code,
    )
    assert codes == expected


@BOTH
def test_a_commit_sent_one_way_is_applied(make_wire: Any, line: str) -> None:
    wire = make_wire(line)
    wire.join("A", "c1")
    ext = {"consumerGroup": "billing", "topic": "orders", "queueId": "0", "commitOffset": "3"}
    opaque = wire.ask(RequestCode.UPDATE_CONSUMER_OFFSET, ext, flag=2)
    assert opaque not in wire.answers
    assert wire.fetch() == (0, 3)


@by_line(1, 29)
def test_a_commit_without_its_offset(make_wire: Any, line: str, expected: int) -> None:
    wire = make_wire(line)
    wire.join("A", "c1")
    ext = {"consumerGroup": "billing", "topic": "orders", "queueId": "0"}
    assert wire.call(RequestCode.UPDATE_CONSUMER_OFFSET, ext).code == expected


@BOTH
def test_pulls_are_not_fenced(make_wire: Any, line: str) -> None:
    wire = make_wire(line)
    wire.send()
    wire.lock("A", 0)
    assert wire.pull(0).code == 0


# ------------------------------------------------------------------ membership


@by_line({}, {"IS_SUPPORT_HEART_BEAT_V2": "true", "IS_SUB_CHANGE": "true"})
def test_a_heartbeat_is_answered_with(make_wire: Any, line: str, expected: dict[str, str]) -> None:
    answer = make_wire(line).join("A", "c1")
    assert (answer.code, dict(answer.ext)) == (0, expected)


# ------------------------------------------------------------------ send-back and dead letters


def send_back(wire: Any, delay_level: int, offset: int = 0) -> int:
    code: int = wire.call(
        RequestCode.CONSUMER_SEND_MSG_BACK, SendBackHeader(offset, "billing", delay_level)
    ).code
    return code


@BOTH
def test_send_back_returns_after_the_third_level(make_wire: Any, line: str) -> None:
    wire = make_wire(line)
    sent = wire.send()
    assert send_back(wire, 0) == 0
    wire.pass_ms(9_999)
    assert wire.messages("%RETRY%billing") == []
    wire.pass_ms(1)
    (message,) = wire.messages("%RETRY%billing")
    assert message.reconsume_times == 1
    assert message.origin_id == sent.ext["msgId"]
    assert message.properties["RETRY_TOPIC"] == "orders"


@BOTH
def test_send_back_below_zero_is_a_dead_letter_at_once(make_wire: Any, line: str) -> None:
    wire = make_wire(line)
    wire.send()
    assert send_back(wire, -1) == 0
    (message,) = wire.messages("%DLQ%billing")
    assert message.reconsume_times == 1


@BOTH
def test_send_back_of_nothing(make_wire: Any, line: str) -> None:
    wire = make_wire(line)
    wire.send()
    assert send_back(wire, 0, offset=12345) == 1


@by_line(("%RETRY%billing", 5_000), ("%DLQ%billing", 0))
def test_a_send_to_the_retry_topic_while_a_lock_lives(
    make_wire: Any, line: str, expected: tuple[str, int]
) -> None:
    """Counter 1 of 5: 5.x diverts because of the lock, 4.9 delays and keeps it."""
    wire = make_wire(line)
    topic, after_ms = expected
    wire.lock("A", 0)
    sent = wire.send(
        topic="%RETRY%billing", properties={"DELAY": "2"}, reconsume_times=1, max_reconsume_times=5
    )
    assert sent.code == 0
    wire.topic("%DLQ%billing", 1)
    assert len(wire.messages(topic)) == (after_ms == 0)
    wire.pass_ms(5_000)
    assert len(wire.messages(topic)) == 1


@by_line(True, False)
def test_when_a_dead_letter_is_visible(make_wire: Any, line: str, expected: bool) -> None:
    """4.9: after the level that the client set (6: two minutes); 5.x: at once, with DELAY -1."""
    wire = make_wire(line)
    properties = {"DELAY": "6", "UNIQ_KEY": "m1", "KEYS": "k", "TAGS": "t"}
    wire.send(
        b"body",
        topic="%RETRY%billing",
        properties=properties,
        reconsume_times=4,
        max_reconsume_times=3,
    )
    at_once = wire.messages("%DLQ%billing")
    wire.pass_ms(120_000)
    (message,) = wire.messages("%DLQ%billing")
    assert (at_once == []) is expected
    assert (message.body, message.message_id, message.tags) == (b"body", "m1", "t")
    assert message.reconsume_times == 4
    assert message.properties.get("DELAY") == ("6" if expected else "-1")


@by_line([2, 3, 4], [3, 4])
def test_from_which_counter_on_a_message_is_dead(
    make_wire: Any, line: str, expected: list[int]
) -> None:
    """Limit 2: 4.9 asks for at least 2, 5.x for more than 2."""
    wire = make_wire(line)
    for counter in range(5):
        wire.send(
            b"%d" % counter, topic="%RETRY%billing", reconsume_times=counter, max_reconsume_times=2
        )
    assert [int(message.body) for message in wire.messages("%DLQ%billing")] == expected


@BOTH
@pytest.mark.parametrize(
    ("fields", "dead"), [({}, False), ({"version": 120}, False), ({"version": 121}, True)]
)
def test_whose_limit_counts(make_wire: Any, line: str, fields: dict[str, int], dead: bool) -> None:
    """The request's own limit counts from wire version 121 (3.4.9) on, else the group's 16."""
    wire = make_wire(line)
    limit = {"l": "2"} if fields else {}
    ext = {"a": "P", "b": "%RETRY%billing", "e": "0", "g": "0", "j": "5", **limit}
    assert wire.call(RequestCode.SEND_MESSAGE_V2, ext, b"m", **fields).code == 0
    assert len(wire.messages("%DLQ%billing" if dead else "%RETRY%billing")) == 1


# ------------------------------------------------------------------ anything else


@BOTH
@pytest.mark.parametrize("code", [9999, 40, -1])
def test_an_unknown_code(make_wire: Any, line: str, code: int) -> None:
    assert make_wire(line).call(code).code == 3


NO_FIELDS = (
    RequestCode.HEART_BEAT,
    RequestCode.DELETE_EXPIRED_COMMITLOG,
    RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE,
    RequestCode.GET_BROKER_RUNTIME_INFO,
)
TOPIC_ALONE = (
    RequestCode.GET_CONSUME_STATS,
    RequestCode.GET_TOPIC_STATS_INFO,
    RequestCode.DELETE_TOPIC_IN_BROKER,
    RequestCode.GET_TOPIC_CONFIG,
    RequestCode.QUERY_TOPIC_CONSUME_BY_WHO,
)


@BOTH
@pytest.mark.parametrize("code", sorted(RequestCode))
@pytest.mark.parametrize("ext", [{}, {"topic": "orders", "queueId": "many", "consumerGroup": "g"}])
def test_a_broken_request_is_answered_with_a_code(
    make_wire: Any, line: str, code: int, ext: dict[str, str]
) -> None:
    """Nothing that a frame can carry makes the core raise; the broken field is none where only the topic is read."""
    is_whole = code in NO_FIELDS or (ext and code in TOPIC_ALONE)
    for body in (b"", b"{", b"[]", b'{"consumerGroup":1}'):
        assert make_wire(line).call(code, ext, body).code != 0 or is_whole


@BOTH
def test_a_pull_with_a_commit_on_board(make_wire: Any, line: str) -> None:
    """The commit travels with the pull, and is applied even when nothing is found."""
    wire = make_wire(line)
    wire.send()
    header = PullHeader("billing", "orders", 0, 1, sys_flag=5, commit_offset=1, subscription="*")
    assert wire.call(RequestCode.PULL_MESSAGE, header).code == 19
    assert wire.fetch() == (0, 1)
