"""The whole reference on real sockets: the requests that an ordered consumer and its producer make."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Iterator
from dataclasses import replace

import pytest

from reference_impl.core.broker import BrokerConfig
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
from reference_impl.protocol.message import decode_all, pack_properties
from reference_impl.shell.client import SyncClient
from reference_impl.shell.cluster import LocalCluster, ThreadedCluster
from reference_impl.shell.errors import CLOSED, RequestFailed, split_address
from specs.errors import UsageError
from specs.vocabulary import Queue

GROUP = "billing"
QUEUES = tuple(Queue("orders", "b0", number) for number in range(4))


@pytest.fixture
def cluster() -> Iterator[ThreadedCluster]:
    with ThreadedCluster(BrokerConfig(), topics=("orders",)) as running:
        yield running


@pytest.fixture
def client() -> Iterator[SyncClient]:
    with SyncClient() as one:
        yield one


def send(body: bytes, queue_id: int = 0, key: str = "k1") -> Command:
    properties = pack_properties(
        {"UNIQ_KEY": f"ID-{body.decode()}", "__SHARDINGKEY": key, "WAIT": "true"}
    )
    header = h.SendHeader("P", "orders", queue_id, 1, properties=properties)
    return Command(Ask.SEND_MESSAGE_V2, header.to_ext_v2(), body)


def pull(offset: int, queue_id: int = 0, suspend_ms: int = 0) -> Command:
    flags = h.PULL_SUBSCRIPTION | (h.PULL_SUSPEND if suspend_ms else 0)
    header = h.PullHeader(
        GROUP,
        "orders",
        queue_id,
        offset,
        32,
        flags,
        suspend_timeout_millis=suspend_ms,
        subscription="*",
    )
    return Command(Ask.PULL_MESSAGE, header.to_ext())


def lock(
    client_id: str, queues: tuple[Queue, ...] = QUEUES, code: Ask = Ask.LOCK_BATCH_MQ
) -> Command:
    return Command(code, body=LockBatch(GROUP, client_id, queues).encode())


def heartbeat(client_id: str) -> Command:
    consumer = ConsumerData(GROUP, subscriptions=(Subscription.of("orders"),))
    return Command(Ask.HEART_BEAT, body=Heartbeat(client_id, (), (consumer,)).encode())


def test_routes_name_the_broker(cluster: ThreadedCluster, client: SyncClient) -> None:
    ask = Command(Ask.GET_ROUTEINFO_BY_TOPIC, h.GetRouteHeader("orders").to_ext())
    route = TopicRoute.decode(client.call(cluster.namesrv, ask).body)
    assert [(item.broker, item.read_queues, item.write_queues) for item in route.queues] == [
        ("b0", 4, 4)
    ]
    assert route.brokers[0].master == cluster.brokers["b0"]
    info = ClusterInfo.decode(
        client.call(cluster.namesrv, Command(Ask.GET_BROKER_CLUSTER_INFO)).body
    )
    assert info.clusters == {"DefaultCluster": ("b0",)}
    old = client.call(cluster.namesrv, replace(ask, version=317))
    assert TopicRoute.decode(old.body) == route
    assert b"{0:" in old.body


@pytest.mark.parametrize("binary", [False, True])
def test_send_and_pull(cluster: ThreadedCluster, client: SyncClient, binary: bool) -> None:
    broker = cluster.brokers["b0"]
    for number in range(3):
        answer = client.call(broker, replace(send(f"m{number}".encode()), binary=binary))
        assert answer.code == Code.SUCCESS
        assert h.SendResponse.from_ext(answer.ext).queue_offset == number
        assert answer.binary is binary
    found = client.call(broker, replace(pull(1), binary=binary))
    assert h.PullResponse.from_ext(found.ext).next_begin_offset == 3
    messages = decode_all(found.body)
    assert [(message.queue_offset, message.body, message.message_id) for message in messages] == [
        (1, b"m1", "ID-m1"),
        (2, b"m2", "ID-m2"),
    ]
    assert {message.sharding_key for message in messages} == {"k1"}
    assert messages[0].store_host == broker
    assert client.call(broker, pull(3)).code == Code.PULL_NOT_FOUND
    assert client.call(broker, pull(9)).code == Code.PULL_OFFSET_MOVED


def test_a_parked_pull_is_woken_by_a_send(cluster: ThreadedCluster, client: SyncClient) -> None:
    broker = cluster.brokers["b0"]
    client.call(broker, send(b"m0"))
    parked = client.begin(broker, pull(1, suspend_ms=30_000))
    with SyncClient() as producer:
        producer.call(broker, send(b"m1"))
    assert [message.body for message in decode_all(client.finish(broker, parked, 10).body)] == [
        b"m1"
    ]


def test_leases_between_two_clients(cluster: ThreadedCluster, client: SyncClient) -> None:
    broker = cluster.brokers["b0"]
    assert decode_lock_answer(client.call(broker, lock("A", QUEUES[:2])).body) == set(QUEUES[:2])
    assert decode_lock_answer(client.call(broker, lock("B")).body) == set(QUEUES[2:])
    client.call(broker, lock("B", QUEUES, Ask.UNLOCK_BATCH_MQ))
    assert decode_lock_answer(client.call(broker, lock("B", QUEUES[:2])).body) == frozenset()
    client.call(broker, lock("A", QUEUES, Ask.UNLOCK_BATCH_MQ))
    assert decode_lock_answer(client.call(broker, lock("B")).body) == set(QUEUES)


def test_offsets(cluster: ThreadedCluster, client: SyncClient) -> None:
    broker = cluster.brokers["b0"]
    client.call(broker, heartbeat("A"))
    query = Command(
        Ask.QUERY_CONSUMER_OFFSET, h.QueryConsumerOffsetHeader(GROUP, "orders", 0).to_ext()
    )
    assert client.call(broker, query).code == Code.QUERY_NOT_FOUND
    update = h.UpdateConsumerOffsetHeader(GROUP, "orders", 0, 7)
    assert (
        client.call(broker, Command(Ask.UPDATE_CONSUMER_OFFSET, update.to_ext())).code
        == Code.SUCCESS
    )
    assert h.OffsetResponse.from_ext(client.call(broker, query).ext).offset == 7
    client.oneway(
        broker, Command(Ask.UPDATE_CONSUMER_OFFSET, replace(update, commit_offset=3).to_ext())
    )
    assert h.OffsetResponse.from_ext(client.call(broker, query).ext).offset == 3
    ends = Command(Ask.GET_MAX_OFFSET, h.GetMaxOffsetHeader("orders", 0).to_ext())
    assert h.OffsetResponse.from_ext(client.call(broker, ends).ext).offset == 0


def test_members_are_told_of_each_other(cluster: ThreadedCluster, client: SyncClient) -> None:
    broker = cluster.brokers["b0"]
    client.call(broker, heartbeat("A"))
    client.listen(broker, 5)
    with SyncClient() as other:
        other.call(broker, heartbeat("B"))
        told = client.listen(broker, 10)
        assert [(push.code, push.ext["consumerGroup"]) for push in told] == [
            (Ask.NOTIFY_CONSUMER_IDS_CHANGED, GROUP)
        ]
        ids = Command(Ask.GET_CONSUMER_LIST_BY_GROUP, h.ConsumerGroupHeader(GROUP).to_ext())
        assert sorted(decode_consumer_ids(client.call(broker, ids).body)) == ["A", "B"]
    assert len(client.listen(broker, 10)) == 1
    assert decode_consumer_ids(client.call(broker, ids).body) == ["A"]


def test_a_crash_keeps_messages_and_forgets_leases(
    cluster: ThreadedCluster, client: SyncClient
) -> None:
    broker = cluster.brokers["b0"]
    client.call(broker, send(b"m0"))
    client.call(broker, lock("A"))
    waiting = client.begin(broker, pull(1, suspend_ms=30_000))
    cluster.crash("b0")
    with pytest.raises(RequestFailed, match=CLOSED):
        client.finish(broker, waiting, 10)
    cluster.restart("b0")
    assert cluster.brokers["b0"] == broker
    assert [message.body for message in decode_all(client.call(broker, pull(0)).body)] == [b"m0"]
    assert decode_lock_answer(client.call(broker, lock("B")).body) == set(QUEUES)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (Command(77_777), Code.REQUEST_CODE_NOT_SUPPORTED),
        (Command(Ask.PULL_MESSAGE), Code.SYSTEM_ERROR),
        (
            Command(Ask.SEND_MESSAGE_V2, {"a": "P", "b": "orders", "e": "x", "g": "1"}),
            Code.SYSTEM_ERROR,
        ),
        (Command(Ask.LOCK_BATCH_MQ, body=b"{{{{"), Code.SYSTEM_ERROR),
        (Command(Ask.HEART_BEAT, body=b'{"clientID":5}'), Code.SYSTEM_ERROR),
        (Command(Ask.SEND_MESSAGE_V2, h.SendHeader("P", "a\x01b", 0, 1).to_ext_v2()), None),
    ],
)
def test_malformed_requests_are_answered(
    cluster: ThreadedCluster, client: SyncClient, command: Command, code: Code | None
) -> None:
    """With a code, from both servers; and both go on."""
    for address in (cluster.brokers["b0"], cluster.namesrv):
        answer = client.call(address, command)
        assert answer.code != Code.SUCCESS
        if address != cluster.namesrv and code is not None:
            assert answer.code == code
        assert answer.remark


def test_absurd_frames_close_the_connection(cluster: ThreadedCluster, client: SyncClient) -> None:
    for address in (cluster.brokers["b0"], cluster.namesrv):
        with socket.create_connection(split_address(address), 5) as raw:
            raw.settimeout(10)
            raw.sendall(struct.pack(">i", 0x7FFFFFFF))
            assert raw.recv(10) == b""
    assert client.call(cluster.brokers["b0"], send(b"m0")).code == Code.SUCCESS


def test_two_brokers_and_a_taken_port() -> None:
    async def run() -> None:
        async with LocalCluster(names=("b0", "b1"), topics=("orders",)) as cluster:
            assert set(cluster.brokers) == {"b0", "b1"}
            port = int(cluster.namesrv.rpartition(":")[2])
            with pytest.raises(UsageError, match=f"Port {port} of 127.0.0.1 can't be had"):
                await LocalCluster(namesrv_port=port).start()
            cluster.check()

    asyncio.run(run())


def test_a_topic_name_that_is_refused_is_said() -> None:
    async def run() -> None:
        with pytest.raises(UsageError, match="can't be created"):
            await LocalCluster(topics=("no such name!",)).start()

    asyncio.run(run())
