"""Name servers over sockets: several of them, routes that change, brokers that fall silent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from reference_impl.client import NotReachable, OrderlyConsumer, Producer, PullConsumer, Tuning
from reference_impl.core.broker import BrokerConfig
from reference_impl.core.nameserver import ORDER_NAMESPACE, NameServerConfig
from reference_impl.protocol.bodies import TopicRoute
from reference_impl.protocol.codes import RequestCode, ResponseCode
from reference_impl.protocol.command import NO_EXT, Command
from reference_impl.protocol.headers import (
    PERM_READ,
    PERM_READ_WRITE,
    PERM_WRITE,
    PULL_SUBSCRIPTION,
    CreateTopicHeader,
    GetRouteHeader,
    KvConfigHeader,
    PullHeader,
)
from reference_impl.shell.client import RemotingClient
from reference_impl.shell.cluster import LocalCluster

OFTEN = BrokerConfig(register_ms=200)
QUICK = Tuning(
    client_lease_ms=1_500,
    lock_first_ms=100,
    lock_interval_ms=500,
    rebalance_interval_ms=200,
    rebalance_min_ms=50,
    rebalance_retry_ms=50,
    pull_retry_ms=100,
    heartbeat_ms=300,
    route_poll_ms=100,
    route_retry_ms=100,
    request_timeout_ms=1_000,
    persist_first_ms=200,
    persist_interval_ms=200,
    long_poll_ms=500,
)


async def wait_until(condition: Callable[[], bool], deadline_s: float = 30.0) -> None:
    async with asyncio.timeout(deadline_s):
        while not condition():
            await asyncio.sleep(0.005)


async def ask(address: str, code: RequestCode, ext: Any = NO_EXT) -> Command:
    client = RemotingClient()
    try:
        return await client.request(address, Command(code, ext))
    finally:
        await client.close()


async def route(address: str, topic: str = "orders") -> TopicRoute | None:
    answer = await ask(
        address, RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteHeader(topic, True).to_ext()
    )
    return TopicRoute.decode(answer.body) if answer.code == ResponseCode.SUCCESS else None


async def route_becomes(
    address: str, is_right: Callable[[TopicRoute | None], bool], topic: str = "orders"
) -> None:
    async with asyncio.timeout(30):
        while not is_right(await route(address, topic)):
            await asyncio.sleep(0.01)


async def change(cluster: LocalCluster, read: int, write: int, perm: int = PERM_READ_WRITE) -> None:
    """Change the topic at the broker, and wait until the name server says so."""
    ext = CreateTopicHeader("orders", read, write, perm).to_ext()
    assert (await ask(cluster.brokers["b0"], RequestCode.UPDATE_AND_CREATE_TOPIC, ext)).code == 0
    wanted = [(read, write, perm)]
    await route_becomes(
        cluster.namesrv,
        lambda now: (
            now is not None
            and [(q.read_queues, q.write_queues, q.perm) for q in now.queues] == wanted
        ),
    )


# ---------------------------------------------------------------- several


def test_the_loss_of_a_name_server_is_survived_by_old_and_new_clients_and_brokers() -> None:
    async def go() -> None:
        got: list[str] = []
        shared: dict[str, Any] = {
            "group": "g", "topics": ["orders", "fresh"], "start": "first", "listener": lambda m: got.append(m.text)
        }  # fmt: skip
        async with LocalCluster(OFTEN, name_servers=2, topics=("orders",)) as cluster:
            first, second = cluster.addresses
            assert await route(first) == await route(second)
            async with (
                Producer(cluster.addresses) as producer,
                OrderlyConsumer(cluster.addresses, **shared, **QUICK) as consumer,
            ):
                await producer.send("orders", "before")
                await wait_until(lambda: got == ["before"])
                await cluster.crash_name_server(0)
                await producer.send("orders", "with one")
                await producer.send("fresh", "a topic that nobody knew")
                await wait_until(lambda: len(got) == 3)
                async with Producer(cluster.addresses) as new:
                    await new.send("orders", "from a new client")
                await wait_until(lambda: len(got) == 4)
                assert {queue.topic for queue in consumer.queues} == {"orders", "fresh"}
                await cluster.restart_name_server(0)
                await route_becomes(first, lambda now: now is not None, "fresh")
                await cluster.crash_name_server(1)
                await producer.send("orders", "with the other one")
                async with Producer(cluster.addresses) as new:
                    await new.send("fresh", "from a newer client")
                await wait_until(lambda: len(got) == 6)

    asyncio.run(go())


def test_a_name_server_that_knows_nothing_yet_is_not_the_last_word() -> None:
    """The one that was just started has not heard from the brokers; the other one has."""

    async def go() -> None:
        quiet = BrokerConfig(register_ms=60_000)
        async with LocalCluster(quiet, name_servers=2, topics=("orders",)) as cluster:
            await cluster.crash_name_server(0)
            await cluster.restart_name_server(0)
            assert await route(cluster.addresses[0]) is None
            async with Producer(cluster.addresses) as producer:
                await producer.send("orders", "x")
                await producer.send("made-by-sending", "x")
            async with PullConsumer(
                cluster.addresses, group="g", topics="orders", start="first", **QUICK
            ) as consumer:
                batch = await consumer.next(30)
                assert batch is not None
                assert batch[0].text == "x"

    asyncio.run(go())


def test_without_any_name_server_known_routes_stay_true() -> None:
    async def go() -> None:
        async with (
            LocalCluster(OFTEN, topics=("orders",)) as cluster,
            Producer(cluster.addresses) as producer,
        ):
            await producer.send("orders", "x")
            await cluster.crash_name_server(0)
            await producer.send("orders", "y")
            with pytest.raises(NotReachable):
                await producer.send("another", "z")

    asyncio.run(go())


# ---------------------------------------------------------------- silent brokers


def test_a_broker_that_is_silent_for_too_long_is_forgotten_and_comes_back() -> None:
    async def go() -> None:
        quick = NameServerConfig(broker_expiry_ms=300, scan_ms=50)
        slow = BrokerConfig(register_ms=60_000)
        async with LocalCluster(slow, topics=("orders",), name_server_config=quick) as cluster:
            await route_becomes(cluster.namesrv, lambda now: now is None)
            await cluster.crash("b0")
            await cluster.restart("b0")
            assert await route(cluster.namesrv) is not None

    asyncio.run(go())


def test_a_broker_that_speaks_up_in_time_stays() -> None:
    async def go() -> None:
        quick = NameServerConfig(broker_expiry_ms=2_000, scan_ms=50)
        async with LocalCluster(
            BrokerConfig(register_ms=100), topics=("orders",), name_server_config=quick
        ) as cluster:
            clock = asyncio.get_running_loop()
            end = clock.time() + 3
            while clock.time() < end:
                assert await route(cluster.namesrv) is not None
                await asyncio.sleep(0.05)

    asyncio.run(go())


def test_a_broker_that_crashes_or_leaves_is_gone_at_once() -> None:
    async def go() -> None:
        async with LocalCluster(OFTEN, names=("b0", "b1"), topics=("orders",)) as cluster:
            assert len((await route(cluster.namesrv) or TopicRoute((), ())).brokers) == 2
            await cluster.crash("b1")
            await route_becomes(
                cluster.namesrv, lambda now: now is not None and len(now.brokers) == 1
            )
            await cluster.restart("b1")
            await cluster.bodies.pop("b1").stop()
            await route_becomes(
                cluster.namesrv, lambda now: now is not None and len(now.brokers) == 1
            )

    asyncio.run(go())


# ---------------------------------------------------------------- queue numbers and permissions


def test_a_topic_shrinks_first_for_writers_and_then_for_readers() -> None:
    async def go() -> None:
        got: list[str] = []
        async with (
            LocalCluster(OFTEN, topics=("orders",), queues=4) as cluster,
            Producer(cluster.namesrv) as producer,
            OrderlyConsumer(
                cluster.namesrv,
                group="g",
                topics="orders",
                start="first",
                listener=lambda message: got.append(f"{message.queue.queue_id} {message.text}"),
                **QUICK,
            ) as consumer,
        ):
            await wait_until(lambda: len(consumer.queues) == 4)
            await change(cluster, read=4, write=2)
            await producer.send("orders", "by a client that has not heard", queue=1)
            async with Producer(cluster.namesrv) as fresh:
                places = {
                    (await fresh.send("orders", "x", key=str(number))).queue.queue_id
                    for number in range(20)
                }
            assert places == {0, 1}
            await wait_until(lambda: len(got) == 21)
            assert len(consumer.queues) == 4
            await change(cluster, read=2, write=2)
            await wait_until(lambda: {queue.queue_id for queue in consumer.queues} == {0, 1})
            await change(cluster, read=6, write=6)
            await wait_until(lambda: len(consumer.queues) == 6)
            async with Producer(cluster.namesrv) as fresh:
                await fresh.send("orders", "in a new queue", queue=5)
            await wait_until(lambda: got[-1] == "5 in a new queue")

    asyncio.run(go())


def test_who_may_write_and_who_may_read_is_said_by_the_route() -> None:
    """A broker refuses who reads without permission; who writes is turned away by the route, as at Apache's."""

    async def go() -> None:
        async with LocalCluster(OFTEN, topics=("orders",)) as cluster:
            async with Producer(cluster.namesrv) as producer:
                await producer.send("orders", "while it may be written")
            await change(cluster, 4, 4, PERM_READ)
            async with Producer(cluster.namesrv) as producer:
                with pytest.raises(NotReachable, match="can be written"):
                    await producer.send("orders", "x")
            shared: dict[str, Any] = {"topics": "orders", "start": "first", **QUICK}
            async with PullConsumer(cluster.namesrv, group="reader", **shared) as consumer:
                batch = await consumer.next(30)
                assert batch is not None
                assert batch[0].text == "while it may be written"
            await change(cluster, 4, 4, PERM_WRITE)
            async with Producer(cluster.namesrv) as producer:
                assert (await producer.send("orders", "x")).is_safe
            async with PullConsumer(cluster.namesrv, group="reader", **shared) as consumer:
                with pytest.raises(TimeoutError):
                    await consumer.ready(0.5)
            pull = PullHeader("reader", "orders", 0, 0, 32, PULL_SUBSCRIPTION, subscription="*")
            answer = await ask(cluster.brokers["b0"], RequestCode.PULL_MESSAGE, pull.to_ext())
            assert answer.code == ResponseCode.NO_PERMISSION

    asyncio.run(go())


# ---------------------------------------------------------------- order-topic configuration


def test_an_order_topic_keeps_its_queues_and_refuses_while_a_broker_of_it_is_down() -> None:
    """A key stays where it is: without the fixed list, the loss of a broker would send it to another one."""

    async def go() -> None:
        ordered = NameServerConfig(order_topics=True)
        config = {
            "names": ("b0", "b1"),
            "topics": ("orders",),
            "queues": 2,
            "name_server_config": ordered,
        }
        async with LocalCluster(OFTEN, **config) as cluster:  # type: ignore[arg-type]
            fixed = KvConfigHeader(ORDER_NAMESPACE, "orders", "b0:2;b1:2")
            assert (await ask(cluster.namesrv, RequestCode.PUT_KV_CONFIG, fixed.to_ext())).code == 0
            async with Producer(cluster.namesrv) as producer:
                keys = [f"key-{number}" for number in range(12)]
                before = {key: (await producer.send("orders", "x", key=key)).queue for key in keys}
                assert {queue.broker for queue in before.values()} == {"b0", "b1"}
            await cluster.crash("b1")
            await route_becomes(
                cluster.namesrv, lambda now: now is not None and len(now.brokers) == 1
            )
            async with Producer(cluster.namesrv) as producer:
                for key, queue in before.items():
                    if queue.broker == "b0":
                        assert (await producer.send("orders", "x", key=key)).queue == queue
                    else:
                        with pytest.raises(NotReachable):
                            await producer.send("orders", "x", key=key)
            await ask(cluster.namesrv, RequestCode.DELETE_KV_CONFIG, fixed.to_ext())
            async with Producer(cluster.namesrv) as producer:
                after = {(await producer.send("orders", "x", key=key)).queue.broker for key in keys}
            assert after == {"b0"}

    asyncio.run(go())
