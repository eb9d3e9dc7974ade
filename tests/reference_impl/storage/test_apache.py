"""Stores of released Apache brokers, read by us; and stores of ours, read by them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from conformance.parts import jars
from conformance.parts.apache import ApacheCluster
from conformance.parts.java import find_java
from conformance.parts.processes import wait_until
from reference_impl.core.broker.log import Draft
from reference_impl.core.broker.offset_table import OffsetKey
from reference_impl.protocol import headers as h
from reference_impl.protocol.bodies import SubscriptionGroup, TopicConfig
from reference_impl.protocol.codes import RequestCode as Ask
from reference_impl.protocol.codes import ResponseCode as Code
from reference_impl.protocol.command import Command
from reference_impl.protocol.message import StoredMessage, decode_all, pack_properties
from reference_impl.shell.client import SyncClient
from reference_impl.storage import DiskStore, RealDisk, StoreOptions
from reference_impl.storage.records import without_sum

GROUP = "billing"
AS_APACHE = StoreOptions(segment_bytes=32 * 1024 * 1024, queue_file_bytes=20_000)
"""The sizes with which our tests start Apache's brokers."""
BODIES = [b"plain", "süß €".encode(), b"x" * 3_000, b""]
ROUTE = Command(Ask.GET_ROUTEINFO_BY_TOPIC, h.GetRouteHeader("orders").to_ext())
VERSIONS = [
    pytest.param(
        version,
        marks=[
            pytest.mark.apache,
            *([] if version == jars.DEFAULT[-1] else [pytest.mark.long]),
            pytest.mark.skipif(
                not jars.present(version) or find_java() is None,
                reason=f"needs Java and the jars of RocketMQ {version}; `make setup` gets them",
            ),
        ],
    )
    for version in jars.DEFAULT
]


def send(client: SyncClient, broker: str, body: bytes, number: int) -> None:
    properties = pack_properties(
        {"UNIQ_KEY": f"ID-{number}", "TAGS": f"t{number % 2}", "KEYS": f"k{number}"}
    )
    header = h.SendHeader("P", "orders", number % 2, 1_700_000_000_000, properties=properties)
    assert (
        client.call(broker, Command(Ask.SEND_MESSAGE_V2, header.to_ext_v2(), body), 20).code
        == Code.SUCCESS
    )


def pull(client: SyncClient, broker: str, queue_id: int, tags: str = "*") -> list[StoredMessage]:
    """What the broker shows of the queue; the properties that it adds to what it shows are left out."""
    header = h.PullHeader(GROUP, "orders", queue_id, 0, 32, h.PULL_SUBSCRIPTION, subscription=tags)
    answer = client.call(broker, Command(Ask.PULL_MESSAGE, header.to_ext()), 20)
    return [
        replace(message, properties=without_sum(message.properties))
        for message in decode_all(answer.body)
    ]


def shown_by(store: DiskStore, queue_id: int) -> list[StoredMessage]:
    return list(store.queue("orders", queue_id).messages)


@pytest.mark.long
@pytest.mark.parametrize("version", VERSIONS)
def test_a_killed_broker_of_apache_left_a_store_that_we_read(version: str, tmp_path: Path) -> None:
    """The same messages that it showed, byte for byte, its topics, and the offsets that it had written."""
    with (
        ApacheCluster(version, workdir=tmp_path, keep_store=True) as cluster,
        SyncClient() as client,
    ):
        cluster.create_topic("orders", queues=2)
        assert wait_until(
            lambda: client.call(cluster.namesrv, ROUTE).code == Code.SUCCESS, deadline_s=30
        )
        for number in range(20):
            send(client, cluster.broker, BODIES[number % len(BODIES)] or b"-", number)
        assert wait_until(lambda: len(pull(client, cluster.broker, 1)) == 10, deadline_s=20)
        shown = [pull(client, cluster.broker, queue_id) for queue_id in (0, 1)]
        cluster.stop_broker(kill=True)
    store = DiskStore.open(RealDisk(tmp_path / "store"))
    assert [shown_by(store, queue_id) for queue_id in (0, 1)] == shown
    assert store.topics["orders"].write_queues == 2
    assert "the last broker did not end in good order" in store.said[-1]
    assert store.append(Draft("orders", 0, b"ours", {}), 1, "127.0.0.1:1").queue_offset == 10
    store.close()
    again = DiskStore.open(RealDisk(tmp_path / "store"))
    assert [message.body for message in again.queue("orders", 0).messages][-1] == b"ours"
    assert again.said == []


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "is_clean",
    [pytest.param(True, id="closed", marks=pytest.mark.long), pytest.param(False, id="killed")],
)
def test_a_store_of_ours_is_read_by_apache(version: str, is_clean: bool, tmp_path: Path) -> None:
    """Messages, tags, topics, consumed offsets; it goes on at the next offset, and then we read that.

    The last four messages are marked as a batch: RocketMQ does not mind.
    """
    store = DiskStore.open(RealDisk(tmp_path / "store"), AS_APACHE)
    store.put_topic(TopicConfig("orders", 2, 2))
    store.put_group(SubscriptionGroup(GROUP))
    for number in range(20):
        properties = {"UNIQ_KEY": f"ID-{number}", "TAGS": f"t{number // 2 % 2}"}
        draft = Draft("orders", number % 2, b"m%d" % number, properties)
        draft.prepared_transaction_offset = number - 19 if number > 15 else 0
        store.append(draft, 1_700_000_000_000, "127.0.0.1:10911")
    store.save_offsets({OffsetKey("orders", GROUP): {0: 7}})
    ours = [shown_by(store, queue_id) for queue_id in (0, 1)]
    store.settle()
    if is_clean:
        store.close()
    else:
        store.abandon()
    with (
        ApacheCluster(version, workdir=tmp_path, keep_store=True) as cluster,
        SyncClient() as client,
    ):
        assert wait_until(lambda: len(pull(client, cluster.broker, 1)) == 10, deadline_s=30)
        assert [pull(client, cluster.broker, queue_id) for queue_id in (0, 1)] == ours
        tagged = [message.body for message in pull(client, cluster.broker, 0, "t1")]
        assert tagged == [b"m2", b"m6", b"m10", b"m14", b"m18"]
        query = h.QueryConsumerOffsetHeader(GROUP, "orders", 0)
        answer = client.call(cluster.broker, Command(Ask.QUERY_CONSUMER_OFFSET, query.to_ext()))
        assert h.OffsetResponse.from_ext(answer.ext).offset == 7
        send(client, cluster.broker, b"theirs", 20)
        assert wait_until(lambda: len(pull(client, cluster.broker, 0)) == 11, deadline_s=20)
        cluster.stop_broker(kill=True)
    again = DiskStore.open(RealDisk(tmp_path / "store"), AS_APACHE)
    assert shown_by(again, 0)[:10] == ours[0]
    assert [message.body for message in shown_by(again, 0)[10:]] == [b"theirs"]
    again.close()


@pytest.mark.long
@pytest.mark.parametrize(
    "version", [version for version in VERSIONS if version.values[0] == "5.4.0"]
)
def test_the_check_sum_of_a_record_is_apaches(version: str, tmp_path: Path) -> None:
    """With its own check switched on RocketMQ takes ours at its recovery, and we take those that it wrote."""
    store = DiskStore.open(RealDisk(tmp_path / "store"), AS_APACHE)
    store.put_topic(TopicConfig("orders", 2, 2))
    for number in range(20):
        draft = Draft("orders", number % 2, b"m%d" % number, {"UNIQ_KEY": f"ID-{number}"})
        store.append(draft, 1_000, "127.0.0.1:10911")
    ours = [shown_by(store, queue_id) for queue_id in (0, 1)]
    store.abandon()
    checks = {"enabledAppendPropCRC": "true", "forceVerifyPropCRC": "true"}
    cluster = ApacheCluster(version, workdir=tmp_path, keep_store=True, extra_broker_conf=checks)
    with cluster, SyncClient() as client:
        assert wait_until(lambda: len(pull(client, cluster.broker, 1)) == 10, deadline_s=30)
        assert [pull(client, cluster.broker, queue_id) for queue_id in (0, 1)] == ours
        send(client, cluster.broker, b"theirs", 20)
        assert wait_until(lambda: len(pull(client, cluster.broker, 0)) == 11, deadline_s=20)
        cluster.stop_broker(kill=True)
    again = DiskStore.open(RealDisk(tmp_path / "store"), AS_APACHE)
    last = again.queue("orders", 0).records[10]
    again.close()
    assert b"__CRC32#" in last
    assert shown_by_record(last) == b"theirs"


def shown_by_record(record: bytes) -> bytes:
    (message,) = decode_all(record)
    return message.body
