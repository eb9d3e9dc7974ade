"""Producer and orderly consumers on real sockets: our own cluster, and released Apache brokers."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from conformance.parts import jars
from conformance.parts.apache import ApacheCluster
from conformance.parts.java import find_java
from reference_impl.core.broker import BrokerConfig
from reference_impl.core.consumer import ConsumerConfig, OrderlyConsumer
from reference_impl.core.io import SendMessage
from reference_impl.core.producer import Producer, ProducerConfig
from reference_impl.protocol import headers as h
from reference_impl.protocol.codes import RequestCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.message import StoredMessage, decode_all
from reference_impl.shell.client import RemotingClient
from reference_impl.shell.cluster import LocalCluster
from reference_impl.shell.node import ClientNode, Listener, ListenerContext
from specs.vocabulary import Outcome

VERSIONS = [
    pytest.param(
        version,
        marks=[
            pytest.mark.apache,
            pytest.mark.long,
            pytest.mark.skipif(
                not jars.present(version) or find_java() is None,
                reason=f"needs Java and the jars of RocketMQ {version}; `make setup` gets them",
            ),
        ],
    )
    for version in jars.DEFAULT
]
"""In the long tests: our clients work on both releases in test_conform_wire.py and track_record/test_on_the_wire.py."""
KEYS = [f"k{number}" for number in range(8)]
EACH = 10


def consumer(
    namesrv: str, name: str, listener: Listener, group: str = "billing", limit: int = -1
) -> ClientNode:
    """With intervals so short that a hand-over takes a second or two."""
    config = ConsumerConfig(
        name,
        group,
        {"orders": "*"},
        (namesrv,),
        consume_from="first",
        max_reconsume_times=limit,
        suspend_ms=20,
        client_lease_ms=1_500,
        lock_first_ms=100,
        lock_interval_ms=500,
        rebalance_interval_ms=500,
        rebalance_min_ms=100,
        rebalance_retry_ms=100,
        pull_retry_ms=200,
        heartbeat_ms=500,
        persist_first_ms=500,
        persist_interval_ms=500,
        long_poll_ms=2_000,
    )
    return ClientNode(OrderlyConsumer(config), listener)


async def send_all(namesrv: str) -> None:
    """EACH messages for each key, the keys in turn."""
    node = ClientNode(Producer(ProducerConfig("producer", "P", (namesrv,), ("orders",))))
    node.start()
    for seq in range(EACH):
        sent = [
            node.send(SendMessage((key, seq), "orders", f"{key}:{seq}".encode(), key, seq))
            for key in KEYS
        ]
        assert {done.outcome for done in await asyncio.gather(*sent)} == {Outcome.OK}
    assert await node.shutdown()


async def wait_until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


class Ledger:
    """A listener that writes down who got what."""

    def __init__(self) -> None:
        self.got: defaultdict[str, list[str]] = defaultdict(list)  # by key
        self.lanes: defaultdict[str, set[int]] = defaultdict(set)  # by client
        self.running: set[int] = set()  # lanes

    def listener(self, client: str) -> Listener:
        async def listen(messages: Sequence[StoredMessage], context: ListenerContext) -> Outcome:
            lane = context.lane.queue_id
            assert lane not in self.running
            self.running.add(lane)
            try:  # a killed client's call is cancelled
                await asyncio.sleep(0.001)
            finally:
                self.running.remove(lane)
            for message in messages:
                assert message.sharding_key is not None
                self.got[message.sharding_key].append(message.body.decode())
                self.lanes[client].add(lane)
            return Outcome.SUCCESS

        return listen

    @property
    def is_complete(self) -> bool:
        return all(len(set(self.got[key])) == EACH for key in KEYS)


async def two_consumers_share_the_lanes(namesrv: str) -> None:
    """Both get lanes, each key arrives in order, nothing is missing."""
    ledger = Ledger()
    nodes = [consumer(namesrv, name, ledger.listener(name)) for name in ("A", "B")]
    for node in nodes:
        node.start()
    await send_all(namesrv)
    await wait_until(lambda: ledger.is_complete)
    for node in nodes:
        assert await node.shutdown()
    for key in KEYS:
        firsts = list(dict.fromkeys(ledger.got[key]))
        assert firsts == [f"{key}:{seq}" for seq in range(EACH)]


async def a_survivor_takes_over(namesrv: str) -> None:
    """A dies without a word while it works; B gets the rest, from where A's commits ended or before."""
    ledger = Ledger()
    victim = consumer(namesrv, "A", ledger.listener("A"), group="survivors")
    victim.start()
    await wait_until(lambda: len(ledger.lanes["A"]) == 4)
    await victim.kill()
    heir = consumer(namesrv, "B", ledger.listener("B"), group="survivors")
    heir.start()
    await send_all(namesrv)
    await wait_until(
        lambda: (
            len(ledger.lanes["B"]) == 4 and ledger.got[KEYS[0]].count(f"{KEYS[0]}:{EACH - 1}") > 1
        )
    )
    assert await heir.shutdown()


async def a_message_that_always_fails_is_given_up(namesrv: str, broker: str) -> None:
    """Limit 2: three deliveries, then the dead letters, then the next message."""
    poisoned: list[int] = []
    later: list[str] = []

    def listen(messages: Sequence[StoredMessage], context: ListenerContext) -> Outcome:
        for message in messages:
            if message.body == b"k0:0":
                poisoned.append(*context.delivery)
                return Outcome.SUSPEND
            later.append(message.body.decode())
        return Outcome.SUCCESS

    node = consumer(namesrv, "C", listen, group="doomed", limit=2)
    node.start()
    await wait_until(lambda: "k0:1" in later)
    assert await node.shutdown()
    assert poisoned == [1, 2, 3]
    client = RemotingClient()
    pull = h.PullHeader("readers", "%DLQ%doomed", 0, 0, 32, h.PULL_SUBSCRIPTION, subscription="*")
    dead: list[StoredMessage] = []
    async with asyncio.timeout(60):
        while not dead:
            answer = await client.request(broker, Command(RequestCode.PULL_MESSAGE, pull.to_ext()))
            dead = decode_all(answer.body)
    assert dead[0].body == b"k0:0"
    await client.close()


async def all_three(namesrv: str, broker: str) -> None:
    await two_consumers_share_the_lanes(namesrv)
    await a_message_that_always_fails_is_given_up(namesrv, broker)
    await a_survivor_takes_over(namesrv)


def test_on_our_own_cluster() -> None:
    async def run() -> None:
        async with LocalCluster(BrokerConfig(lease_ms=3_000), topics=("orders",)) as cluster:
            await all_three(cluster.namesrv, cluster.brokers["b0"])
            cluster.check()

    asyncio.run(run())


@pytest.mark.parametrize("version", VERSIONS)
def test_on_apache(version: str, tmp_path: Path) -> None:
    with ApacheCluster(version, workdir=tmp_path, broker_lease_ms=3_000) as cluster:
        cluster.create_topic("orders", queues=4)
        asyncio.run(all_three(cluster.namesrv, cluster.broker))
