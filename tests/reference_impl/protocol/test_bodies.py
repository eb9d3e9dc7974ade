"""JSON bodies in both dialects, and what is no body at all."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_impl.protocol import bodies as b
from reference_impl.protocol.command import Command
from reference_impl.protocol.errors import ProtocolError
from specs.vocabulary import Queue

text = st.text(st.characters(codec="utf-8"), max_size=15)
number = st.integers(0, 2**31 - 1)
queues = st.builds(Queue, text, text, number)
ROUTE = b.TopicRoute(
    (b.QueueData("b0", 4, 4),), (b.BrokerData("c0", "b0", {0: "127.0.0.1:1", 1: "x:2"}),)
)


@given(st.builds(b.LockBatch, text, text, st.lists(queues, max_size=4).map(tuple), st.booleans()))
def test_lock_requests_survive_the_round_trip(batch: b.LockBatch) -> None:
    assert b.LockBatch.decode(batch.encode()) == batch
    assert b.decode_lock_answer(b.encode_lock_answer(batch.queues)) == frozenset(batch.queues)


def test_a_lock_request_of_a_4_9_client_has_no_only_this_broker() -> None:
    data = b'{"clientId":"A","consumerGroup":"G","mqSet":[{"brokerName":"b0","queueId":0,"topic":"T"}]}'
    assert b.LockBatch.decode(data) == b.LockBatch("G", "A", (Queue("T", "b0", 0),))


subscriptions = st.builds(
    b.Subscription,
    text,
    text.filter(bool),
    st.lists(text, max_size=3).map(tuple),
    st.lists(number, max_size=3).map(tuple),
    number,
)
consumers = st.builds(
    b.ConsumerData, text, subscriptions=st.lists(subscriptions, max_size=3).map(tuple)
)


@given(
    st.builds(
        b.Heartbeat,
        text,
        st.lists(text, max_size=3).map(tuple),
        st.lists(consumers, max_size=2).map(tuple),
    )
)
def test_heartbeats_survive_the_round_trip(heartbeat: b.Heartbeat) -> None:
    assert b.Heartbeat.decode(heartbeat.encode()) == heartbeat


@given(st.lists(text))
def test_consumer_ids_keep_order_and_duplicates(ids: list[str]) -> None:
    assert b.decode_consumer_ids(b.encode_consumer_ids(ids)) == ids


def test_routes_in_both_dialects() -> None:
    loose = ROUTE.encode(quoted_keys=False)
    assert b'{0:"127.0.0.1:1",1:"x:2"}' in loose
    assert b'{"0":"127.0.0.1:1","1":"x:2"}' in ROUTE.encode()
    assert b.TopicRoute.decode(loose) == b.TopicRoute.decode(ROUTE.encode()) == ROUTE
    assert ROUTE.brokers[0].master == "127.0.0.1:1"


def test_digits_inside_strings_are_left_alone() -> None:
    assert b.loads(b'{"a":"{1:2}, {3:\\"4\\"}",5:{-6:[{7:8}]}}') == {
        "a": '{1:2}, {3:"4"}',
        "5": {"-6": [{"7": 8}]},
    }


def test_a_cluster_whose_names_are_numbers() -> None:
    """Only keys that are numbers to us lose their quotes."""
    info = b.ClusterInfo((b.BrokerData("1", "2", {0: "h:1"}),), {"1": ("2",)})
    assert b'{"2":{"cluster":"1"' in info.encode(quoted_keys=False)
    assert b.ClusterInfo.decode(info.encode(quoted_keys=False)) == info
    assert b.ClusterInfo.decode(info.encode()) == info


@pytest.mark.parametrize(
    ("command", "standard"),
    [
        (Command(code=105, version=401), True),
        (Command(code=105, version=399), False),
        (Command(code=105, version=317, ext={"acceptStandardJsonOnly": "true"}), True),
    ],
)
def test_who_gets_standard_json(command: Command, standard: bool) -> None:
    assert b.wants_standard_json(command) is standard


def test_registrations_and_groups_survive_the_round_trip() -> None:
    registration = b.BrokerRegistration((b.TopicConfig("T", 8, 4, 6, 0, True),), 5, 7, ("f",))
    assert b.BrokerRegistration.decode(registration.encode()) == registration
    group = b.SubscriptionGroup("G", True, True, 2, 3, False)
    assert b.SubscriptionGroup.decode(group.encode()) == group


READERS: list[Callable[[bytes], object]] = [
    b.LockBatch.decode,
    b.decode_lock_answer,
    b.Heartbeat.decode,
    b.decode_consumer_ids,
    b.TopicRoute.decode,
    b.ClusterInfo.decode,
    b.BrokerRegistration.decode,
    b.SubscriptionGroup.decode,
]
json_values: st.SearchStrategy[object] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | text,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            text
            | st.sampled_from(
                [
                    "mqSet",
                    "lockOKMQSet",
                    "consumerIdList",
                    "queueDatas",
                    "brokerDatas",
                    "brokerAddrs",
                    "topic",
                    "producerDataSet",
                    "consumerDataSet",
                    "subscriptionDataSet",
                    "clusterAddrTable",
                    "clientID",
                    "brokerAddrTable",
                    "groupName",
                    "topicConfigSerializeWrapper",
                    "topicConfigTable",
                    "brokerName",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@given(st.sampled_from(READERS), st.binary(max_size=60) | json_values.map(b.dumps))
def test_hostile_bodies_never_crash(read: Callable[[bytes], object], data: bytes) -> None:
    with contextlib.suppress(ProtocolError):
        read(data)


@pytest.mark.parametrize(
    ("read", "data", "why"),
    [
        (b.decode_consumer_ids, b'{"consumerIdList":["c1",2]}', "must hold strings"),
        (b.TopicConfig.from_json, {"topicName": "T", "readQueueNums": -1}, "must be from 0 to"),
        (
            b.decode_reset_offsets,
            b'{"offsetTable":{{"brokerName":"b0","queueId":0,"topic":"T"}:{}}}',
            "must be of type int",
        ),
        (b.Subscription.from_json, {"topic": "T", "codeSet": ["x"]}, "codeSet must hold numbers"),
        (
            b.BrokerData.from_json,
            {"brokerName": "b0", "brokerAddrs": {"first": "x:1"}},
            "an address for each whole number",
        ),
    ],
)
def test_what_is_of_another_kind_is_refused_in_a_sentence(
    read: Callable[[Any], object], data: Any, why: str
) -> None:
    with pytest.raises(ProtocolError, match=why):
        read(data)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"\xff", b"[" * 100_000, b'{"a":"\\ud800"}', b'{"a":' + b"1" * 5000 + b"}"]
)
def test_what_is_no_json_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        b.loads(data)


@pytest.mark.parametrize(
    ("word", "code"),
    [
        ("", 0),
        ("a", 97),
        ("TagA", 2598919),
        ("polygenelubricants", -(2**31)),
        ("\U0001f600", 1772899),
    ],
)
def test_java_hash_is_javas(word: str, code: int) -> None:
    assert b.java_hash(word) == code


def test_tag_expressions() -> None:
    assert b.Subscription.of("T").sub_string == "*"
    two = b.Subscription.of("T", "TagA || TagB||TagA", 9)
    assert two.tags == ("TagA", "TagB")
    assert two.codes == (b.java_hash("TagA"), b.java_hash("TagB"))
    with pytest.raises(ProtocolError, match="names no tag"):
        b.Subscription.of("T", "||")
