"""Large bodies between Apache's Java client and our library, over our broker: compressed, and read by the other."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from conformance.drivers import java
from conformance.drivers.java import start_java
from conformance.parts.doctor import why_not
from conformance.waiting import wait_until
from reference_impl.client import BlockingProducer, PullConsumer
from reference_impl.protocol.message import SYS_COMPRESSED, SYS_COMPRESSION_TYPE
from reference_impl.shell.cluster import LocalCluster
from specs.errors import UsageError
from specs.plan.config import Config

BODY = "süß und groß " * 2_000
DEADLINE_S = 60.0
CONFIG = Config(rebalance_ms=500, lock_interval_ms=500, consume_from="first")


@pytest.mark.long
@pytest.mark.apache
def test_each_reads_what_the_other_has_compressed(tmp_path: Path) -> None:
    for part in ("java", "maven"):
        if (reason := why_not(part)) is not None:
            pytest.skip(reason)
    try:
        java.classes("5.4.0")
    except UsageError as error:
        pytest.skip(str(error))
    asyncio.run(both_ways(tmp_path))


async def both_ways(folder: Path) -> None:
    async with LocalCluster(topics=("from-java", "to-java"), queues=1) as cluster:
        await asyncio.to_thread(java_side, cluster.namesrv, folder)
        async with PullConsumer(
            cluster.namesrv, group="python", topics="from-java", start="first"
        ) as consumer:
            batch = await consumer.next(DEADLINE_S)
        assert batch is not None
        assert [message.text for message in batch] == [BODY]
        flags = [
            cluster.stores["b0"].queue(topic, 0).get(0).sys_flag
            for topic in ("from-java", "to-java")
        ]
        assert [flag & SYS_COMPRESSED for flag in flags] == [SYS_COMPRESSED] * 2
        assert flags[1] & SYS_COMPRESSION_TYPE == 0  # what every release reads as zlib


def java_side(namesrv: str, folder: Path) -> None:
    """A Java producer sends to one topic, our producer to the other, and a Java consumer reads that."""
    events: list[Mapping[str, Any]] = []
    with start_java("5.4.0", "shop", CONFIG, folder, events.append) as shop:
        shop.hello()
        shop.ask("start", role="producer", client="shop", group="shops", namesrv=namesrv, config={})
        shop.send(
            shop.next_number(), topic="from-java", message="m1", key="k", key_seq=1, body=BODY
        )
        assert wait_until(lambda: any(event["event"] == "sent" for event in events), DEADLINE_S)
        shop.stop()
    with BlockingProducer(namesrv) as producer:
        producer.send("to-java", BODY, key="k")
    with start_java("5.4.0", "worker", CONFIG, folder, events.append) as worker:
        worker.hello()
        settings = {"consume_from": "first"}
        worker.ask(
            "start", role="consumer", client="worker", group="workers", namesrv=namesrv, config=settings,
            topics=["to-java"], listener=[],
        )  # fmt: skip
        assert wait_until(
            lambda: any(event["event"] == "delivered" for event in events), DEADLINE_S
        )
        worker.stop()
    assert BODY in str(next(event for event in events if event["event"] == "delivered"))
