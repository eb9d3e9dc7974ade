"""Our codec and clients against released Apache brokers: the same requests, the bytes compared."""

from __future__ import annotations

import asyncio
import struct
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.parts import jars
from conformance.parts.apache import ApacheCluster
from conformance.parts.java import find_java
from conformance.parts.processes import wait_until
from reference_impl.protocol import headers as h
from reference_impl.protocol.bodies import (
    ClusterInfo,
    ConsumerData,
    Heartbeat,
    LockBatch,
    Subscription,
    TopicRoute,
    decode_consumer_ids,
    decode_lock_answer,
)
from reference_impl.protocol.codes import RequestCode as Ask
from reference_impl.protocol.codes import ResponseCode as Code
from reference_impl.protocol.command import Command
from reference_impl.protocol.message import (
    SYS_COMPRESSED,
    StoredMessage,
    decode_all,
    encode,
    pack_properties,
    parse_offset_message_id,
)
from reference_impl.shell.client import RemotingClient, SyncClient
from specs.vocabulary import Queue

GROUP = "billing"
QUEUES = tuple(Queue("orders", "b0", number) for number in range(4))
ROUTE = Command(Ask.GET_ROUTEINFO_BY_TOPIC, h.GetRouteHeader("orders").to_ext(), version=300)
BODIES = [b"plain", "süß €".encode(), b"x", bytes(range(256)) * 40]
VERSIONS = [
    pytest.param(
        version,
        marks=[
            pytest.mark.apache,
            *([] if version == "4.9.7" else [pytest.mark.long]),
            pytest.mark.skipif(
                not jars.present(version) or find_java() is None,
                reason=f"needs Java and the jars of RocketMQ {version}; `make setup` gets them",
            ),
        ],
    )
    for version in jars.DEFAULT
]
"""The other release in the long tests: test_client.py talks to that one in every run of the tests."""


@pytest.mark.parametrize("version", VERSIONS)
def test_apache_understands_us_and_we_understand_apache(version: str, tmp_path: Path) -> None:
    with ApacheCluster(version, workdir=tmp_path) as cluster, SyncClient() as client:
        cluster.create_topic("orders", queues=4)
        assert wait_until(
            lambda: client.call(cluster.namesrv, ROUTE).code == Code.SUCCESS, deadline_s=30
        )
        routes_are_read(client, cluster)
        stored_messages_are_the_same_bytes(client, cluster.broker, version)
        leases_and_members(client, cluster.broker)
        offsets(client, cluster.broker)
        topics_of_cluster_and_broker(client, cluster.broker)
        a_full_pull(client, cluster.broker)
        what_a_delayed_message_says(client, cluster.broker)
        asyncio.run(requests_on_asyncio(cluster))


def routes_are_read(client: SyncClient, cluster: ApacheCluster) -> None:
    """Unquoted keys for an old client, standard JSON for one that asks for it, binary headers."""
    loose = client.call(cluster.namesrv, ROUTE)
    assert b"{0:" in loose.body
    standard = replace(
        ROUTE, ext=h.GetRouteHeader("orders", accept_standard_json_only=True).to_ext()
    )
    route = TopicRoute.decode(client.call(cluster.namesrv, standard).body)
    assert route == TopicRoute.decode(loose.body)
    assert route == TopicRoute.decode(
        client.call(cluster.namesrv, replace(ROUTE, binary=True)).body
    )
    assert route.brokers[0].master == cluster.broker
    assert [(item.read_queues, item.perm) for item in route.queues] == [(4, h.PERM_READ_WRITE)]
    info = ClusterInfo.decode(
        client.call(cluster.namesrv, Command(Ask.GET_BROKER_CLUSTER_INFO)).body
    )
    assert info.clusters == {"DefaultCluster": ("b0",)}


def stored_messages_are_the_same_bytes(client: SyncClient, broker: str, version: str) -> None:
    """What an Apache broker stored, our encoder writes again byte for byte."""
    for number, body in enumerate(BODIES):
        properties = pack_properties(
            {"UNIQ_KEY": f"ID{number}", "__SHARDINGKEY": "k", "TAGS": "t", "WAIT": "true"}
        )
        header = h.SendHeader(
            "P", "orders", 0, 1_700_000_000_000, properties=properties, flag=number
        )
        command = Command(Ask.SEND_MESSAGE_V2, header.to_ext_v2(), body, binary=bool(number % 2))
        sent = client.call(broker, command)
        assert sent.code == Code.SUCCESS, sent.remark
        assert h.SendResponse.from_ext(sent.ext).queue_offset == number
    packed = h.SendHeader(
        "P", "orders", 0, 5, sys_flag=SYS_COMPRESSED, properties=pack_properties({"UNIQ_KEY": "Z"})
    )
    sent = client.call(
        broker, Command(Ask.SEND_MESSAGE, packed.to_ext(), zlib.compress(b"z" * 1000))
    )
    response = h.SendResponse.from_ext(sent.ext)
    pull = h.PullHeader(GROUP, "orders", 0, 0, 32, h.PULL_SUBSCRIPTION, subscription="*")
    for binary in (False, True):
        found = client.call(broker, Command(Ask.PULL_MESSAGE, pull.to_ext(), binary=binary))
        assert found.code == Code.SUCCESS
        assert h.PullResponse.from_ext(found.ext).next_begin_offset == len(BODIES) + 1
        raw = decode_all(found.body, inflate=False)
        assert [message.queue_offset for message in raw] == list(range(len(BODIES) + 1))
        ends = version != "4.9.7"
        assert (
            b"".join(map(encode, raw) if ends else map(encode_without_last_end, raw)) == found.body
        )
        messages = decode_all(found.body)
    assert [message.body for message in messages] == [*BODIES, b"z" * 1000]
    assert messages[0].sharding_key == "k"
    assert messages[0].message_id == "ID0"
    assert messages[-1].offset_id == response.msg_id
    assert parse_offset_message_id(response.msg_id) == (broker, messages[-1].physical_offset)


def encode_without_last_end(message: StoredMessage) -> bytes:
    """4.9 leaves out the separator behind the last property."""
    record = bytearray(encode(message)[:-1])
    length = len(record) - (len(encode(replace(message, properties={}))))  # of the properties, now
    struct.pack_into(">i", record, 0, len(record))
    struct.pack_into(">h", record, len(record) - length - 2, length)
    return bytes(record)


def leases_and_members(client: SyncClient, broker: str) -> None:
    def lock(
        client_id: str, queues: tuple[Queue, ...], code: Ask = Ask.LOCK_BATCH_MQ
    ) -> frozenset[Queue]:
        answer = client.call(
            broker, Command(code, body=LockBatch(GROUP, client_id, queues).encode())
        )
        assert answer.code == Code.SUCCESS
        return decode_lock_answer(answer.body) if code == Ask.LOCK_BATCH_MQ else frozenset()

    assert lock("A", QUEUES[:2]) == set(QUEUES[:2])
    assert lock("B", QUEUES) == set(QUEUES[2:])
    assert lock("B", QUEUES[:2]) == frozenset()
    lock("A", QUEUES, Ask.UNLOCK_BATCH_MQ)
    assert lock("B", QUEUES) == set(QUEUES)

    consumer = ConsumerData(GROUP, subscriptions=(Subscription.of("orders", "t || u", 7),))
    with SyncClient() as other:
        for name, member in (("A", client), ("B", other)):
            beat = Command(Ask.HEART_BEAT, body=Heartbeat(name, ("P",), (consumer,)).encode())
            assert member.call(broker, beat).code == Code.SUCCESS
        assert {push.code for push in client.listen(broker, 10)} == {
            Ask.NOTIFY_CONSUMER_IDS_CHANGED
        }
        ids = Command(Ask.GET_CONSUMER_LIST_BY_GROUP, h.ConsumerGroupHeader(GROUP).to_ext())
        assert sorted(decode_consumer_ids(client.call(broker, ids).body)) == ["A", "B"]


def offsets(client: SyncClient, broker: str) -> None:
    update = h.UpdateConsumerOffsetHeader(GROUP, "orders", 1, 7)
    assert (
        client.call(broker, Command(Ask.UPDATE_CONSUMER_OFFSET, update.to_ext())).code
        == Code.SUCCESS
    )
    query = Command(
        Ask.QUERY_CONSUMER_OFFSET, h.QueryConsumerOffsetHeader(GROUP, "orders", 1).to_ext()
    )
    assert h.OffsetResponse.from_ext(client.call(broker, query).ext).offset == 7
    for code, header in (
        (Ask.GET_MAX_OFFSET, h.GetMaxOffsetHeader("orders", 0)),
        (Ask.GET_MIN_OFFSET, h.GetMinOffsetHeader("orders", 0)),
        (Ask.SEARCH_OFFSET_BY_TIMESTAMP, h.SearchOffsetHeader("orders", 0, 0)),
    ):
        answer = client.call(broker, Command(code, header.to_ext()))
        assert h.OffsetResponse.from_ext(answer.ext).offset in (0, len(BODIES) + 1)


def topics_of_cluster_and_broker(client: SyncClient, broker: str) -> None:
    """They are there, take messages, and can be named as templates; nobody may create or delete them."""
    for topic, queues in (("DefaultCluster", 16), ("b0", 1)):
        sent = [
            client.call(
                broker,
                Command(Ask.SEND_MESSAGE_V2, h.SendHeader("P", topic, queue, 1).to_ext_v2(), b"x"),
            )
            for queue in (queues - 1, queues)
        ]
        assert [answer.code == Code.SUCCESS for answer in sent] == [True, False]
        for command in (
            Command(Ask.UPDATE_AND_CREATE_TOPIC, h.CreateTopicHeader(topic, 3, 3).to_ext()),
            Command(Ask.DELETE_TOPIC_IN_BROKER, h.TopicHeader(topic).to_ext()),
        ):
            assert (
                client.call(broker, command).remark
                == f"The topic[{topic}] is conflict with system topic."
            )
    fresh = h.SendHeader(
        "P", "fresh", 15, 1, default_topic="DefaultCluster", default_topic_queue_nums=40
    )
    assert (
        client.call(broker, Command(Ask.SEND_MESSAGE_V2, fresh.to_ext_v2(), b"x")).code
        == Code.SUCCESS
    )


def a_full_pull(client: SyncClient, broker: str) -> None:
    """32 messages, however many are asked for."""
    for _ in range(40):
        header = h.SendHeader("P", "fresh", 0, 1)
        assert (
            client.call(broker, Command(Ask.SEND_MESSAGE_V2, header.to_ext_v2(), b"x")).code
            == Code.SUCCESS
        )

    def found(most: int) -> int:
        pull = h.PullHeader(GROUP, "fresh", 0, 0, most, h.PULL_SUBSCRIPTION, subscription="*")
        return len(decode_all(client.call(broker, Command(Ask.PULL_MESSAGE, pull.to_ext())).body))

    assert wait_until(lambda: found(40) == 32, deadline_s=10)
    assert [found(most) for most in (0, 1, 32, 33, 1000)] == [1, 1, 32, 32, 32]


def what_a_delayed_message_says(client: SyncClient, broker: str) -> None:
    """The level that it was sent with; for one beyond the table, the last of its 18."""
    for level in (1, 99, 0, -1):
        properties = pack_properties({"UNIQ_KEY": f"L{level}", "DELAY": str(level)})
        header = h.SendHeader("P", "fresh", 1, 1, properties=properties)
        assert (
            client.call(broker, Command(Ask.SEND_MESSAGE_V2, header.to_ext_v2(), b"x")).code
            == Code.SUCCESS
        )
    pull = h.PullHeader(GROUP, "fresh", 1, 0, 32, h.PULL_SUBSCRIPTION, subscription="*")

    def told() -> dict[str | None, int | None]:
        answer = client.call(broker, Command(Ask.PULL_MESSAGE, pull.to_ext()))
        return {message.message_id: message.delay_level for message in decode_all(answer.body)}

    assert wait_until(lambda: told() == {"L1": 1, "L99": 18, "L0": 0, "L-1": -1}, deadline_s=20)


async def requests_on_asyncio(cluster: ApacheCluster) -> None:
    """Many requests at a time on one connection, a parked pull among them; a clean close."""
    client = RemotingClient()
    pull = h.PullHeader(
        GROUP,
        "orders",
        2,
        0,
        32,
        h.PULL_SUBSCRIPTION | h.PULL_SUSPEND,
        suspend_timeout_millis=15_000,
        subscription="*",
    )
    parked = client.submit(cluster.broker, Command(Ask.PULL_MESSAGE, pull.to_ext()), 20_000)
    header = h.SendHeader("P", "orders", 3, 1)
    sends = [
        client.submit(
            cluster.broker, Command(Ask.SEND_MESSAGE_V2, header.to_ext_v2(), b"%d" % n), 10_000
        )
        for n in range(50)
    ]
    assert {(await send).code for send in sends} == {Code.SUCCESS}
    await client.request(
        cluster.broker,
        Command(Ask.SEND_MESSAGE_V2, replace(header, queue_id=2).to_ext_v2(), b"wake"),
    )
    assert [message.body for message in decode_all((await parked).body)] == [b"wake"]
    await client.close()
