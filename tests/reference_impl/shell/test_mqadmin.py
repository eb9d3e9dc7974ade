"""Apache's own mqadmin reads our broker's figures, and changes and deletes its topics and groups."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.parts import jars
from conformance.parts.java import find_java
from conformance.parts.mqadmin import run_mqadmin
from reference_impl.core.broker import BrokerConfig
from reference_impl.protocol.bodies import ConsumerData, Heartbeat, Subscription
from reference_impl.protocol.codes import RequestCode as Ask
from reference_impl.protocol.command import Command
from reference_impl.protocol.headers import SendHeader, UpdateConsumerOffsetHeader
from reference_impl.shell.client import SyncClient
from reference_impl.shell.cluster import ThreadedCluster

pytestmark = [pytest.mark.apache, pytest.mark.long]
VERSIONS = [
    pytest.param(
        version,
        marks=pytest.mark.skipif(
            not jars.present(version) or find_java() is None,
            reason=f"needs Java and the jars of RocketMQ {version}; `make setup` gets them",
        ),
    )
    for version in jars.DEFAULT
]


@pytest.fixture
def cluster() -> Iterator[ThreadedCluster]:
    """Three messages in the first queue of `orders`, of which a group has consumed two."""
    with (
        ThreadedCluster(BrokerConfig(), topics=("orders",), queues=2) as running,
        SyncClient() as client,
    ):
        broker = running.brokers["b0"]
        for _ in range(3):
            send = SendHeader("P", "orders", 0, 1).to_ext_v2()
            assert client.call(broker, Command(Ask.SEND_MESSAGE_V2, send, b"m")).code == 0
        member = ConsumerData(
            "billing", subscriptions=(Subscription.of("orders"),)
        )  # makes the group's retry topic
        heartbeat = Heartbeat("alice", (), (member,)).encode()
        assert client.call(broker, Command(Ask.HEART_BEAT, body=heartbeat)).code == 0
        commit = UpdateConsumerOffsetHeader("billing", "orders", 0, 2).to_ext()
        assert client.call(broker, Command(Ask.UPDATE_CONSUMER_OFFSET, commit)).code == 0
        yield running


def mqadmin(version: str, home: Path, namesrv: str, *words: str) -> list[list[str]]:
    """The words of each line that it prints."""
    return [line.split() for line in run_mqadmin(version, namesrv, words, home).splitlines()]


@pytest.mark.parametrize("version", VERSIONS)
def test_how_far_a_topic_and_a_group_are(
    version: str, cluster: ThreadedCluster, tmp_path: Path
) -> None:
    status = mqadmin(version, tmp_path, cluster.namesrv, "topicStatus", "-t", "orders")
    assert [line[:4] for line in status if line[:1] == ["b0"]] == [
        ["b0", "0", "0", "3"],
        ["b0", "1", "0", "0"],
    ]
    progress = mqadmin(version, tmp_path, cluster.namesrv, "consumerProgress", "-g", "billing")
    assert ["orders", "b0", "0", "3", "2", "1"] in [line[:6] for line in progress]
    assert any(line[-3:] == ["Diff", "Total:", "1"] for line in progress)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_topic_shrinks_and_goes_and_so_does_a_group(
    version: str, cluster: ThreadedCluster, tmp_path: Path
) -> None:
    def ask(*words: str) -> None:
        mqadmin(version, tmp_path, cluster.namesrv, *words, "-c", "DefaultCluster")

    store = cluster.stores["b0"]
    ask("updateTopic", "-t", "orders", "-r", "2", "-w", "1")
    assert (store.topics["orders"].read_queues, store.topics["orders"].write_queues) == (2, 1)
    ask("deleteTopic", "-t", "orders")
    assert "orders" not in store.topics
    assert store.queue("orders", 0).min_offset == 3
    ask("deleteSubGroup", "-g", "billing")
    assert "billing" not in store.groups
