"""RocketMQ's administration tool on our cluster: every command that docs/mqadmin.md names."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from conformance.parts import jars
from conformance.parts.java import find_java
from conformance.parts.mqadmin import run_mqadmin
from reference_impl.client import Producer, PullConsumer, SendResult
from reference_impl.core.broker import BrokerConfig
from reference_impl.shell.cluster import ThreadedCluster

PAGE = Path(__file__).resolve().parents[3] / "docs" / "mqadmin.md"
ROW = re.compile(r"^\| `([A-Za-z]+) ?([^`]*)` \|", re.MULTILINE)
SHOWS = {
    "clusterList": r"DefaultCluster +b0 +0 +127\.0\.0\.1:\d+ +inorder",
    "brokerStatus": r"brokerVersionDesc +: inorder",
    "topicList": r"^orders$",
    "topicRoute": r'"brokerName":"b0"',
    "topicStatus": r"^b0 +0 +0 +2 ",
    "topicClusterList": r"^DefaultCluster$",
    "statsAll": r"^orders +billing +0 ",
    "updateTopic": r"create topic to .* success",
    "updateTopicPerm": r"update topic perm from 6 to 4 in .* success",
    "updateSubGroup": r"create subscription group to .* success",
    "updateOrderConf": r"update orderConf success",
    "consumerProgress": r"^orders +b0 +3 +2 +2 +0 ",
    "queryMsgByKey": r"^ID +\d+ +\d+",
    "queryMsgByUniqueKey": r"Keys: +\[o-1 all\]",
    "queryMsgById": r"Keys: +\[o-1 all\]",
    "queryMsgByOffset": r"Queue Offset: +0",
    "resetOffsetByTime": r"^b0 +3 +0 *$",
    "deleteExpiredCommitLog": r"^success",
    "cleanExpiredCQ": r"^success",
    "deleteTopic": r"delete topic \[made\] from cluster \[DefaultCluster\] success",
    "deleteSubGroup": r"delete subscription group \[billing\] .* success",
}
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


def commands() -> list[tuple[str, str]]:
    """(command, its other words) of each row of the page."""
    return ROW.findall(PAGE.read_text())


async def fill(namesrv: str) -> SendResult:
    """Eight messages of each of two topics, one of them consumed by the group `billing`; the other's second."""
    async with Producer(namesrv) as producer:
        for topic in ("orders", "made"):
            sent = [
                await producer.send(topic, f"{n}", keys=[f"o-{n}", "all"], queue=n % 4)
                for n in range(8)
            ]
    async with PullConsumer(namesrv, group="billing", topics="orders", start="first") as consumer:
        count = 0
        while count < 8:
            count += len(await consumer.next() or ())
        consumer.done()
    return sent[1]


def test_every_command_of_the_page_is_tried() -> None:
    assert [name for name, _ in commands()] == list(SHOWS)


@pytest.mark.apache
@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("version", VERSIONS)
def test_the_commands_work(version: str, tmp_path: Path) -> None:
    with ThreadedCluster(BrokerConfig(), topics=("orders",)) as cluster:
        sent = asyncio.run(fill(cluster.namesrv))
        failed: list[str] = []
        for name, rest in commands():
            words = words_of(version, name, rest, sent, cluster.brokers["b0"])
            said = run_mqadmin(version, cluster.namesrv, words, tmp_path / "home")
            wanted = SHOWS[name].replace("ID", sent.message_id or "?")
            if re.search(wanted, said, re.MULTILINE) is None or "Exception" in said:
                failed.append(f"{' '.join(words)}:\n{said[:1000]}")
        assert failed == []


def words_of(version: str, name: str, rest: str, sent: SendResult, broker: str) -> Sequence[str]:
    """The page's words, with names of this test's in place of capitals."""
    topic = "made" if name.startswith(("queryMsgBy", "update", "delete")) else "orders"
    known = {
        "TOPIC": topic, "GROUP": "billing", "CLUSTER": "DefaultCluster", "BROKER": "b0", "ADDRESS": broker,
        "KEY": "o-1", "ID": (sent.offset_id if name == "queryMsgById" else sent.message_id) or "",
        "TIME": "0", "LIST": "b0:4",
    }  # fmt: skip
    words = [known.get(word, word) for word in rest.split()]
    if name == "queryMsgById" and version.startswith("5."):
        words += ["-t", topic]
    return [name, *words]
