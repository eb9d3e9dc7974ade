"""A topic shrinks under our client: write queues first, then read queues, and no message is lost."""

from __future__ import annotations

import asyncio

import pytest

from reference_impl.client import NotReachable, OrderlyConsumer, Producer
from reference_impl.protocol.codes import RequestCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.headers import PERM_READ, CreateTopicHeader
from reference_impl.shell.client import RemotingClient
from reference_impl.shell.cluster import LocalCluster
from tests.reference_impl.client.test_client import QUICK, Inbox, orders, wait_until

KEYS = [f"k{number}" for number in range(16)]


async def change(cluster: LocalCluster, code: RequestCode, header: CreateTopicHeader) -> None:
    client = RemotingClient()
    try:
        answer = await client.request(cluster.brokers["b0"], Command(code, header.to_ext()))
        assert answer.code == 0
    finally:
        await client.close()


def test_no_message_is_lost_when_write_queues_go_first_and_read_queues_later() -> None:
    asyncio.run(_shrink())


async def _shrink() -> None:
    async with orders() as cluster, Producer(cluster.namesrv) as old:
        sent: list[str] = []

        async def send_round(producer: Producer) -> set[int]:
            """One message of each key; the queues that they went to."""
            used = set()
            for key in KEYS:
                sent.append(f"{key}-{len(sent)}")
                used.add((await producer.send("orders", sent[-1], key=key)).queue.queue_id)
            return used

        assert await send_round(old) == {0, 1, 2, 3}
        await change(
            cluster, RequestCode.UPDATE_AND_CREATE_TOPIC, CreateTopicHeader("orders", 4, 2)
        )
        # Who has not heard of it yet sends where it always did, and that is read as well.
        assert await send_round(old) == {0, 1, 2, 3}
        inbox = Inbox()
        async with (
            Producer(cluster.namesrv) as new,
            OrderlyConsumer(
                cluster.namesrv,
                group="billing",
                topics="orders",
                listener=inbox,
                start="first",
                **QUICK,
            ),
        ):
            assert await send_round(new) == {0, 1}
            await wait_until(lambda: len(inbox.got) == len(sent))
            await change(
                cluster, RequestCode.UPDATE_AND_CREATE_TOPIC, CreateTopicHeader("orders", 2, 2)
            )
            await send_round(new)
            await wait_until(lambda: len(inbox.got) == len(sent))
        assert sorted(inbox.texts) == sorted(sent)


def test_a_topic_that_may_not_be_written_is_refused_by_the_producer_and_read_to_its_end() -> None:
    asyncio.run(_close_for_writing())


async def _close_for_writing() -> None:
    async with orders() as cluster:
        async with Producer(cluster.namesrv) as before:
            await before.send("orders", "last", key="k")
        await change(
            cluster,
            RequestCode.UPDATE_AND_CREATE_TOPIC,
            CreateTopicHeader("orders", 4, 4, PERM_READ),
        )
        inbox = Inbox()
        async with (
            Producer(cluster.namesrv, create_topics=False) as after,
            OrderlyConsumer(
                cluster.namesrv,
                group="billing",
                topics="orders",
                listener=inbox,
                start="first",
                **QUICK,
            ),
        ):
            await inbox.has(1)
            with pytest.raises(NotReachable):
                await after.send("orders", "no", key="k")
        assert inbox.texts == ["last"]
