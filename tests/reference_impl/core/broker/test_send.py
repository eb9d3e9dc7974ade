"""Sends: checks, automatic topics, batches, what the recorder is told."""

from __future__ import annotations

import zlib
from random import Random
from typing import Any

import pytest

from reference_impl.core.broker import Broker, BrokerConfig, BrokerStore
from reference_impl.core.io import Received
from reference_impl.protocol.codes import RequestCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.headers import SendHeader
from reference_impl.protocol.message import BatchPart, encode_batch
from specs.vocabulary import Kind, Level


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"topic": "bad name"}, 1),
        ({"topic": "x" * 128}, 1),
        ({"topic": ""}, 1),
        ({"topic": "TBW102"}, 0),  # as 4.9.7 and 5.4.0 have it
        ({"topic": "SCHEDULE_TOPIC_XXXX"}, 16),
        ({"topic": "new", "default_topic": "nowhere"}, 17),
        ({"body": b"x" * (4 * 1024 * 1024 + 1)}, 13),
        ({"properties": {"big": "x" * 32767}}, 13),
        ({"properties": {"DELAY": "soon"}}, 1),
        ({"sys_flag": 4}, 16),  # half messages of transactions
        ({}, 0),
    ],
)
def test_checks(wire: Any, fields: dict[str, Any], code: int) -> None:
    assert wire.send(**fields).code == code


@pytest.mark.parametrize(("wanted", "made"), [(4, 4), (16, 8)])
def test_an_unknown_topic_is_made_from_its_template(wire: Any, wanted: int, made: int) -> None:
    """As many queues as the producer wants, at most as many as the template has."""
    assert wire.send(topic="new", default_topic_queue_nums=wanted).code == 0
    assert wire.store.topics["new"].write_queues == made
    assert wire.store.topics["new"].perm == 6


def test_no_topic_is_made_where_that_is_switched_off(make_wire: Any) -> None:
    wire = make_wire(auto_create_topics=False)
    assert wire.send(topic="new").code == 17
    assert wire.send(topic="%RETRY%g").code == 0


def test_an_unknown_group_has_no_dead_letters(make_wire: Any) -> None:
    assert make_wire(auto_create_groups=False).send(topic="%RETRY%g").code == 26


def test_the_queue_is_drawn_from_the_choices_handed_in() -> None:
    """The same seed gives the same queues, and no send is placed without it."""

    def queues(seed: int) -> list[str]:
        broker = Broker(BrokerConfig(), BrokerStore(), Random(seed))
        ext = SendHeader("P", "new", -1, 0).to_ext_v2()
        effects = [
            broker.handle(0, Received("c", Command(RequestCode.SEND_MESSAGE_V2, ext, b"m")))
            for _ in range(20)
        ]
        return [each[-1].command.ext["queueId"] for each in effects]

    assert queues(1) == queues(1)
    assert set(queues(1)) == {"0", "1", "2", "3"}
    assert queues(1) != queues(2)


def test_both_spellings_of_a_send_mean_the_same(wire: Any) -> None:
    header = SendHeader("P", "orders", 2, 5, properties="UNIQ_KEY\x01a\x02", flag=3)
    wire.call(RequestCode.SEND_MESSAGE, header, b"m")
    wire.call(RequestCode.SEND_MESSAGE_V2, header.to_ext_v2(), b"m")
    first, second = wire.messages("orders", 2)
    assert (first.body, first.properties, first.flag, first.born_ms) == (
        second.body,
        second.properties,
        second.flag,
        second.born_ms,
    )
    assert (first.queue_offset, second.queue_offset) == (0, 1)


def batch(wire: Any, parts: list[BatchPart], topic: str = "orders") -> Command:
    header = SendHeader("P", topic, 1, 5, batch=True)
    answer: Command = wire.call(
        RequestCode.SEND_BATCH_MESSAGE, header.to_ext_v2(), encode_batch(parts)
    )
    return answer


def test_a_batch_lies_together(wire: Any) -> None:
    wire.send(queue_id=1)
    answer = batch(wire, [BatchPart(b"%d" % n, {"UNIQ_KEY": str(n)}) for n in range(3)])
    assert (answer.code, answer.ext["queueOffset"]) == (0, "1")
    assert len(answer.ext["msgId"].split(",")) == 3
    assert [message.body for message in wire.messages("orders", 1)] == [b"m", b"0", b"1", b"2"]


@pytest.mark.parametrize(
    ("parts", "topic"),
    [
        ([], "orders"),
        ([BatchPart(b"a")], "%RETRY%billing"),
        ([BatchPart(b"a"), BatchPart(b"b", {"DELAY": "1"})], "orders"),
    ],
)
def test_batches_that_are_refused_store_nothing(
    wire: Any, parts: list[BatchPart], topic: str
) -> None:
    assert batch(wire, parts, topic).code == 13
    assert wire.store.end == 0


def test_a_torn_batch_stores_nothing(wire: Any) -> None:
    body = encode_batch([BatchPart(b"a"), BatchPart(b"b")])[:-1]
    header = SendHeader("P", "orders", 1, 5, batch=True)
    assert wire.call(RequestCode.SEND_BATCH_MESSAGE, header.to_ext_v2(), body).code == 1
    assert wire.store.end == 0


def test_what_the_recorder_is_told(wire: Any) -> None:
    """One note for each stored message, in the columns of a history."""
    properties = {"UNIQ_KEY": "m1", "__SHARDINGKEY": "k", "KEY_SEQ": "7", "TAGS": "t"}
    wire.send(b"body", queue_id=2, properties=properties)
    (note,) = [note for note in wire.notes if note.kind is Kind.APPEND]
    assert note.fields == {
        "level": Level.STORE,
        "topic": "orders",
        "broker": "b0",
        "broker_epoch": 1,
        "queue_id": 2,
        "queue_offset": 0,
        "message_id": "m1",
        "origin_id": None,
        "sharding_key": "k",
        "key_seq": 7,
        "reconsume_times": 0,
        "delay_level": None,
        "body_hash": zlib.crc32(b"body"),
        "tags": "t",
    }


def test_a_copy_names_the_unique_key_of_its_origin(wire: Any) -> None:
    """Whether a client made it (by unique key) or the broker (by place in the log)."""
    wire.send(properties={"UNIQ_KEY": "m1"})
    ext = {"offset": "0", "group": "billing", "delayLevel": "-1"}
    wire.call(RequestCode.CONSUMER_SEND_MSG_BACK, ext)
    wire.send(
        topic="%RETRY%billing",
        properties={"UNIQ_KEY": "x", "ORIGIN_MESSAGE_ID": "m1"},
        reconsume_times=17,
    )
    origins = [note.fields["origin_id"] for note in wire.notes if note.kind is Kind.APPEND]
    assert origins == [None, "m1", "m1"]
