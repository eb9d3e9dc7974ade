"""Where a case is played: a simulated cluster whose frames take no time, and the raw clients beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from conformance.cases.hand import Hand, Question
from conformance.cases.story import Story
from reference_impl.core.allocation import Strategy
from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.log import BrokerStore
from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.mutants import Mutant
from reference_impl.sim.cluster import Cluster
from reference_impl.sim.node import Node
from reference_impl.sim.simulate import cores_of, runinfo_of
from reference_impl.sim.time import EPOCH_MS
from specs.errors import UsageError
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.plan.config import Config
from specs.plan.plan import ClientPlan, Plan, TopicPlan, Topology

NO_TIME = 1
"""The network's latency is 0 to this less one."""
WAITS = "waits"


@dataclass(slots=True)
class Setting:
    """What stands before anything happens, gathered from the commands that say so."""

    config: Config = field(default_factory=Config)
    brokers: tuple[str, ...] = Topology().brokers
    topics: dict[str, int] = field(default_factory=lambda: {"orders": 1})
    clients: dict[str, ClientPlan] = field(default_factory=dict)

    def configure(self, values: Mapping[str, Any]) -> None:
        self.config = Config.from_json({**self.config.to_json(), **values})

    def add(self, client: ClientPlan) -> None:
        """Raises UsageError when somebody else has that name."""
        known = self.clients.get(client.id)
        if known is not None and known != client:
            raise UsageError(
                f"{client.id} is two clients: a raw one, or a consumer of another group, by the same name"
            )
        if client.id in self.brokers:
            raise UsageError(f"{client.id} is a broker")
        self.clients[client.id] = client

    def plan(self) -> Plan:
        topics = tuple(TopicPlan(name, queues) for name, queues in self.topics.items())
        return Plan(
            topology=Topology(self.brokers, topics, ()),
            config=self.config,
            clients=tuple(self.clients.values()),
        )


class World:
    """A cluster in which nothing takes time but what the case says. mutant: run that one's classes.

    make_cluster: where it is played; on sockets instead of in the simulated world (`conformance.cases.sockets`).
    """

    def __init__(
        self,
        setting: Setting,
        mutant: Mutant | None = None,
        make_cluster: Callable[..., Cluster] = Cluster,
    ) -> None:
        self.plan = setting.plan()
        self.plan.check("the case")
        self.cluster = make_cluster(
            self.plan, replace(cores_of(mutant), prober=Hand), latency_ms=NO_TIME
        )
        self.story = Story()
        self.brokers = setting.brokers
        self._mutant = mutant
        self.strategies: Mapping[str, Strategy] = (
            cores_of(mutant).consumer or OrderlyConsumer
        ).rebalance_class.strategies
        self._attempts: Counter[str] = Counter()
        self._raw = [client.id for client in self.plan.clients if client.kind == "prober"]
        self.pass_time(0)

    def close(self) -> None:
        """Leave nothing behind."""
        self.cluster.close()

    # ------------------------------------------------------------ time

    @property
    def now_ms(self) -> int:
        return self.cluster.now_ms

    def pass_time(self, ms: int) -> None:
        self.cluster.run_until(self.cluster.now_ms + ms)

    def perform(self, do: str, args: Mapping[str, Any]) -> None:
        """One of the plan's actions, and all that follows from it at once."""
        self.cluster.perform(do, args)
        self.pass_time(0)

    # ------------------------------------------------------------ raw clients

    def ask(self, client: str, question: Question) -> str:
        """What the broker answers, or that the question waits; a client that had gone is started anew."""
        node = self.cluster.node(client)
        if not node.alive:
            node.boot(Hand(client))
        node.post(question)
        self.pass_time(0)
        hand = _hand(node)
        for heard in hand.heard:
            if heard.token == hand.last:
                hand.heard.remove(heard)
                return heard.text
        return WAITS

    def attempt(self, message_id: str) -> int:
        """How often raw clients have sent the message, this time included."""
        self._attempts[message_id] += 1
        return self._attempts[message_id]

    def disconnect(self, client: str) -> None:
        """Its connections close; whatever it held or waited for."""
        self.cluster.node(client).halt()
        self.pass_time(0)

    def address(self, broker: str) -> str:
        """Of the broker by that name; of the first one for a name that no broker has."""
        return self.cluster.node(broker if broker in self.brokers else self.brokers[0]).address

    def store(self, broker: str) -> BrokerStore:
        """What a running broker keeps on disk."""
        core = self.cluster.node(broker).core
        if not isinstance(core, Broker):
            raise UsageError(f"{broker} is down")
        return core.store

    @property
    def wall_ms(self) -> int:
        """The wall clock of those whose clock nobody stepped, in ms since the epoch."""
        return EPOCH_MS + self.cluster.now_ms

    # ------------------------------------------------------------ what came of it

    def news(self) -> list[str]:
        """What raw clients heard without having asked just now, and what the consumers did."""
        return [*self._heard(), *self.story.go_on(self.cluster.rows())]

    def _heard(self) -> Iterable[str]:
        found = []
        for client in self._raw:
            node = self.cluster.node(client)
            if node.alive:
                hand = _hand(node)
                for heard in hand.heard:
                    text = heard.text if heard.token is None else f"hears: {heard.text}"
                    found.append((heard.now_ms - EPOCH_MS, f"{client} {text}"))
                hand.heard.clear()
        return [f"{at_ms}ms  {text}" for at_ms, text in sorted(found, key=lambda item: item[0])]

    def history(self) -> tuple[RunInfo, list[Row]]:
        """All of it, for a judge, with what lies in the brokers' queues at the end."""
        self.cluster.drain()
        return runinfo_of(self.plan, self._mutant), self.cluster.rows()


def _hand(node: Node) -> Hand:
    assert isinstance(node.core, Hand), "a raw client's node runs a Hand"
    return node.core
