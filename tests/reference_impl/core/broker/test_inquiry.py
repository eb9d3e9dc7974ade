"""What an operator asks: messages by key, how far a group is, and how far queues go."""

from __future__ import annotations

import json
from typing import Any

from reference_impl.protocol.bodies import (
    ConsumeStats,
    OffsetLag,
    QueueSpan,
    decode_topic_stats,
)
from reference_impl.protocol.codes import RequestCode
from reference_impl.protocol.headers import ConsumeStatsHeader, QueryMessageHeader, TopicStatsHeader
from reference_impl.protocol.message import decode_all
from specs.vocabulary import Queue

FOR_EVER = 2**62


def ask(
    wire: Any, key: str, *, most: int = 10, since_ms: int = 0, until_ms: int = FOR_EVER, **more: str
) -> list[bytes]:
    """The bodies of what is found."""
    header = QueryMessageHeader("orders", key, most, since_ms, until_ms)
    answer = wire.call(RequestCode.QUERY_MESSAGE, {**header.to_ext(), **more})
    if answer.code == 22:
        assert answer.body == b""
        return []
    assert answer.code == 0
    found = decode_all(answer.body)
    assert answer.ext["indexLastUpdatePhyoffset"] == str(found[-1].physical_offset)
    return [message.body for message in found]


def test_by_unique_key_and_by_each_key(wire: Any) -> None:
    wire.send(b"a", properties={"UNIQ_KEY": "m1", "KEYS": "o-7 o-8"})
    wire.send(b"b", queue_id=1, properties={"UNIQ_KEY": "m2", "KEYS": "o-8"})
    assert ask(wire, "m1", _UNIQUE_KEY_QUERY="true") == [b"a"]
    assert ask(wire, "o-7") == [b"a"]
    assert ask(wire, "o-8") == [b"a", b"b"]
    assert ask(wire, "o") == []
    wire.send(b"c", properties={"UNIQ_KEY": "m3", "KEYS": "o-8"})  # after the first question
    assert ask(wire, "o-8") == [b"a", b"b", b"c"]


def test_the_newest_so_many_within_the_times(wire: Any) -> None:
    times = []
    for number in range(4):
        times.append(wire.now_ms)
        wire.send(b"%d" % number, properties={"UNIQ_KEY": f"m{number}", "KEYS": "k"})
        wire.pass_ms(1_000)
    assert ask(wire, "k", most=2) == [b"2", b"3"]
    assert ask(wire, "k", since_ms=times[1], until_ms=times[2]) == [b"1", b"2"]
    assert ask(wire, "k", since_ms=times[1] + 1, until_ms=times[2] - 1) == []


def test_a_question_for_the_unique_key_has_a_limit_of_its_own(wire: Any) -> None:
    for _ in range(40):
        wire.send(properties={"UNIQ_KEY": "m1"})
    assert len(ask(wire, "m1", most=1, _UNIQUE_KEY_QUERY="true")) == 32
    assert len(ask(wire, "m1", most=1)) == 1


def test_what_retention_took_is_not_found(wire: Any) -> None:
    for name in ("m1", "m2"):
        wire.send(name.encode(), properties={"UNIQ_KEY": name, "KEYS": "k"})
    assert ask(wire, "k") == [b"m1", b"m2"]
    wire.store.trim("orders", 0, 1)
    assert ask(wire, "k") == [b"m2"]


def lag(wire: Any, group: str = "billing", topic: str | None = "orders") -> dict[Queue, OffsetLag]:
    answer = wire.call(RequestCode.GET_CONSUME_STATS, ConsumeStatsHeader(group, topic))
    assert answer.code == 0
    return dict(ConsumeStats.decode(answer.body).lags)


def test_lag_of_a_group(wire: Any) -> None:
    wire.join("alice", "c1")
    stored_ms = wire.now_ms
    for _ in range(3):
        wire.send()
    wire.commit(2)
    wire.pull(3)
    found = lag(wire)
    assert found[Queue("orders", "b0", 0)] == OffsetLag(3, 2, stored_ms, pulled=3)
    assert found[Queue("orders", "b0", 0)].lag == 1
    assert found[Queue("orders", "b0", 1)] == OffsetLag(0, 0, 0)
    assert len(found) == 4
    assert lag(wire, topic=None) == found
    assert lag(wire, "nobody", None) == {}
    assert lag(wire, topic="nowhere") == {}


def test_how_far_queues_go(wire: Any) -> None:
    stored_ms = wire.now_ms
    for _ in range(3):
        wire.send()
    wire.store.trim("orders", 0, 1)
    answer = wire.call(RequestCode.GET_TOPIC_STATS_INFO, TopicStatsHeader("orders"))
    found = decode_topic_stats(answer.body)
    assert found[Queue("orders", "b0", 0)] == QueueSpan(1, 3, stored_ms)
    assert found[Queue("orders", "b0", 3)] == QueueSpan(0, 0, 0)
    assert wire.call(RequestCode.GET_TOPIC_STATS_INFO, TopicStatsHeader("nowhere")).code == 17


def test_what_a_broker_tells_of_itself(wire: Any) -> None:
    booted_ms = wire.now_ms
    wire.pass_ms(1_000)
    wire.send()
    wire.send(queue_id=1)
    answer = wire.call(RequestCode.GET_BROKER_RUNTIME_INFO)
    table = json.loads(answer.body)["table"]
    assert answer.code == 0
    assert all(isinstance(value, str) for value in table.values())
    assert [
        table[name].split()[0] for name in ("putTps", "getTransferredTps", "getTransferedTps")
    ] == ["0.0"] * 3
    assert table["brokerVersionDesc"] == "inorder (5.x)"
    assert (table["bootTimestamp"], table["earliestMessageTimeStamp"]) == (
        str(booted_ms),
        str(wire.now_ms),
    )
    assert (table["commitLogMaxOffset"], table["msgPutTotalTodayNow"]) == (str(wire.store.end), "2")


def test_a_topic_s_settings(wire: Any) -> None:
    answer = wire.call(RequestCode.GET_TOPIC_CONFIG, TopicStatsHeader("orders"))
    told = json.loads(answer.body)
    assert (told["topicName"], told["readQueueNums"], told["writeQueueNums"], told["perm"]) == (
        "orders",
        4,
        4,
        6,
    )
    assert wire.call(RequestCode.GET_TOPIC_CONFIG, TopicStatsHeader("nowhere")).code == 17


def test_who_consumes_a_topic(wire: Any) -> None:
    """Who has subscribed to it, and who has stored an offset."""

    def groups() -> list[str]:
        answer = wire.call(RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, TopicStatsHeader("orders"))
        return list(json.loads(answer.body)["groupList"])

    assert groups() == []
    wire.join("alice", "c1")
    wire.join("bob", "c2", group="audit", topics=("bills",))
    assert groups() == ["billing"]
    wire.commit(1, group="audit")
    wire.close("c1")
    assert groups() == ["audit"]
