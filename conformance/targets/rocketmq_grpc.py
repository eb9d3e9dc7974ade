"""`rocketmq-local:VERSION+grpc:VERSION[,app.null=none]`: RocketMQ 5's proxy, and its gRPC client in Python at work.

The proxy is in local mode, with the broker in it (`conformance.parts.rocketmq_proxy`); topics and groups are FIFO. The
clients are drivers in processes of their own (drivers/rocketmq-grpc).

A lane is a message group: the broker keeps its order over all members, and no client owns it. Whose work a lane is says
`conformance.drivers.message_leases`. The proxy puts each message group into a queue of the broker's, which several may
share; places in a history are the order of a group's messages in it: in two queues they would be out of order. The
broker is asked over its remoting protocol, past the proxy: it makes what a run needs, and is read to its end.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from conformance.drivers.library import InPython
from conformance.drivers.message_leases import first_tenures, with_letters, with_tenures
from conformance.drivers.plans import DRIVEN, ENDS, drawn_plan
from conformance.drivers.process import DriverProcess, Event
from conformance.drivers.published import placed
from conformance.drivers.targets import GRPC_MARK
from conformance.parts import rocketmq_proxy
from conformance.parts.places import beside
from conformance.parts.rocketmq_proxy import ProxiedCluster
from conformance.targets.base import Run
from conformance.targets.driven import DrivenTarget, Pair
from conformance.targets.options import near, parse
from conformance.targets.systems import ApacheOnThisMachine, System
from conformance.wire.brokers import Brokers
from conformance.wire.client import WireClient, read_fields
from conformance.wire.runner import QUEUES
from reference_impl.protocol.message import StoredMessage
from specs.errors import TargetMisbehaved, UsageError
from specs.faults import crash
from specs.history.hashes import props_hash
from specs.history.row import Row
from specs.history.runinfo import declared
from specs.plan.ability import Ability
from specs.plan.config import Config, config_of
from specs.plan.plan import ListenerRule, Plan
from specs.vocabulary import Kind, Level, Queue

GRPC = "grpc"
TARGET = "rocketmq-local"
PROFILE = "rocketmq-grpc-fifo"
NULL = "app.null"
CHOICES: Mapping[str, tuple[str, ...]] = {NULL: ("failure", "none")}
"""What the application does (drivers/rocketmq-grpc); the first is the default."""
META = "inorder"
"""The property in which a producer sends along what the plan says of a message."""
FIFO = "+message.type=FIFO"
RETRY_MS = 1_000
"""A group's interval; the client knows whole seconds only."""
NO_CLIENT = "127.0.0.1:1"
"""Where a driver would connect that is tried by itself; it does not."""
CONFIG = replace(
    DRIVEN,
    broker_lease_ms=32_000,
    channel_expiry_ms=20_000,
    suspend_ms=RETRY_MS,
    batch=1,
)
"""channel_expiry_ms: a client sends a heartbeat every ten seconds, and the broker looks every ten seconds who sent none
for so long; a second later what that client held comes again, which is what broker_lease_ms says."""
PACE_MS = 7_000
"""From one change to the next; who has died is missed later, and his lanes stand still until then."""
WORK_MS = 500
"""So long a call takes: some are under way when a member dies."""
CHANGES = 3
MESSAGES = 120
RELEASED_LIMIT = 16
LEAST_LIMIT = QUEUES + 1
"""The proxy counts each hand-out against the limit, those to nobody too: a member that dies or leaves has a poll for
each queue waiting at the broker, and a message that comes then goes to one after the other, a second apart. Where they
reach the limit the proxy puts among the dead letters what no listener was called for."""
TOLD = (
    "batch",
    "broker_lease_ms",
    "consume_from",
    "dialect",
    "max_reconsume_times",
    "message_model",
    "mode",
    "subscription",
    "suspend_ms",
)


class PythonGrpc(InPython):
    """Its wheel, and our driver of it."""

    name = GRPC
    wheel = rocketmq_proxy.client
    program = beside("drivers") / "rocketmq-grpc" / "driver.py"

    def environment(self, name: str, folder: Path) -> Mapping[str, str]:
        """It writes a log below its user's home."""
        return {"HOME": str(folder / f"{name}-home")}


class ProxiedApache(ApacheOnThisMachine):
    """Its broker lives in the proxy, and is not killed."""

    abilities = frozenset()
    started = ProxiedCluster
    _cluster: ProxiedCluster

    @property
    def endpoint(self) -> str:
        """Where clients speak gRPC."""
        return self._cluster.endpoint


class FifoBrokers(Brokers):
    """Its topics and groups are FIFO, and known before anybody joins."""

    def _make(self, setup: WireClient) -> None:
        self._refuse_what_is_there(setup)
        self._make_topics(setup, FIFO)
        plan = self._run.plan
        for group in plan.topology.groups:
            answer = setup.create_group(
                {
                    "groupName": group,
                    "consumeMessageOrderly": True,
                    "retryMaxTimes": plan.config.max_reconsume_times,
                    "groupRetryPolicy": {
                        "type": "CUSTOMIZED",
                        "customizedRetryPolicy": {"next": [RETRY_MS]},
                    },
                }
            )
            if answer.code != 0:
                raise TargetMisbehaved(
                    f"the broker did not create {group}: code {answer.code} {answer.remark}"
                )


class GrpcTarget(DrivenTarget):
    """With the gRPC client. What was left out shows while somebody is still at work."""

    mark = GRPC_MARK
    reads_at_work = True

    def __init__(self, pair: Pair, library: PythonGrpc, options: Mapping[str, str]) -> None:
        super().__init__(pair, library.version)
        self.abilities -= {Ability.PROGRESS}  # what is stored is of a queue, and no lane's
        self.library, self.options = library, options
        self._lanes: dict[str, dict[int, list[Mapping[str, Any]]]] = {}

    @property
    def records(self) -> Mapping[str, tuple[str, ...]]:  # type: ignore[override]
        """Besides what the drivers tell: whose the lanes are.

        Nobody looks up where to begin, for the broker knows, and it drops no lane. Nobody is told to go on elsewhere.
        """
        told = {Kind(kind) for kind in super().records[Level.CLIENT]}
        return declared(client=told | {Kind.ADD, Kind.DROP, Kind.FETCH_OFFSET, Kind.PULL})

    def own_plan(self, prefix: str, seed: int, draw: Random) -> Plan:
        """Who came first dies in it, most likely at work: only then does a lane change hands. Nobody else goes: one
        member's polls stay below the limit.
        """
        base = replace(self.config, broker_lease_ms=PACE_MS - 2 * self.config.rebalance_ms)
        drawn = (
            drawn_plan(base, prefix, seed, draw, plain=True, changes=CHANGES, messages=MESSAGES)
            for _ in itertools.count()
        )
        plan = next(each for each in drawn if first_dies(each))
        config = replace(
            plan.config,
            broker_lease_ms=self.config.broker_lease_ms,
            max_reconsume_times=max(LEAST_LIMIT, plan.config.max_reconsume_times),
        )
        rules = (replace(rule, duration_ms=WORK_MS) for rule in plan.listener)
        slowly = (ListenerRule(duration_ms=WORK_MS), *rules)
        return self.suited(replace(plan, config=config, listener=slowly))

    def suited(self, plan: Plan) -> Plan:
        """A call has one message, what failed waits for the group's interval, and there is a limit."""
        rules = tuple(replace(rule, suspend_ms=-1) for rule in plan.listener)
        limit = plan.config.max_reconsume_times
        config = replace(
            plan.config,
            batch=1,
            suspend_ms=RETRY_MS,
            max_reconsume_times=RELEASED_LIMIT if limit < 0 else limit,
        )
        return replace(plan, config=config, listener=rules)

    def settings(self, plan: Plan) -> Config:
        """What the broker was told of topics and groups."""
        ours = plan.config.to_json()
        return config_of({"system": "rocketmq-grpc", **{name: ours[name] for name in TOLD}})

    async def prepare(self, run: Run) -> None:
        await super().prepare(run)
        self._lanes = {}
        first_tenures(run, [queue for queue, group in self.queues(run) if group is None])

    def made_brokers(self, run: Run, system: AbstractContextManager[System]) -> Brokers:
        self.library.ensure()
        return FifoBrokers(run, system)

    def start_client(
        self, name: str, config: Config, folder: Path, on_event: Callable[[Event], Any]
    ) -> DriverProcess:
        endpoint, queues = NO_CLIENT, dict[str, int]()
        if self._brokers is not None and isinstance(self._brokers.system, ProxiedApache):
            endpoint = self._brokers.system.endpoint
            queues = {topic.name: topic.queues for topic in self.run.plan.topology.topics}
        settings = {"endpoint": endpoint, "queues": json.dumps(queues), **self.options}
        return self.library.start(name, settings, folder, on_event)

    async def read(self, queue: Queue) -> Sequence[Mapping[str, Any]]:
        """A lane's messages, wherever a producer has put them; or the dead letters of a group."""
        topics = {topic.name for topic in self.run.plan.topology.topics}
        if queue.topic not in topics:
            return await self._stored(queue)
        if queue.topic not in self._lanes:
            of_topic = self._lanes[queue.topic] = defaultdict(list)
            for each, _ in self.queues(self.run):
                if each.topic == queue.topic:
                    for row in await self._stored(each):
                        of_topic[row["queue_id"]].append(row)
        return self._lanes[queue.topic][queue.queue_id]

    async def _stored(self, queue: Queue) -> Sequence[Mapping[str, Any]]:
        """Of a queue of the broker's, as the plan speaks of them."""
        await self.let_pass()
        return await asyncio.to_thread(self.brokers.read, queue, shown)

    def completed(self, rows: list[Row]) -> list[Row]:
        lease_ms = self.run.plan.config.broker_lease_ms
        return with_letters(with_tenures(placed(rows), lease_ms, counted=False))


def first_dies(plan: Plan) -> bool:
    """Is the consumer killed that was there first, and nobody else goes? It has most of the work: it asks as soon as it
    is done.
    """
    first = next(client.id for client in plan.clients if client.kind == "consumer")
    gone = [(each.do, each.args.get("client")) for each in plan.actions if each.do in ENDS]
    return gone == [(crash.VERB, first)]


def shown(message: StoredMessage) -> dict[str, Any]:
    """A stored message as the columns of a READ row; of a topic's it names the lane, of a dead letter its place."""
    meta = json.loads(message.properties[META])
    seq = meta["key_seq"]
    fields = {
        **read_fields(message),
        "message_id": meta["message_id"],
        "sharding_key": meta["key"],
        "key_seq": None if seq is None else int(seq),
        "props_hash": props_hash(meta["properties"]),
    }
    if fields["origin_id"] is not None:
        fields["origin_id"] = fields["message_id"]  # the client gives its messages ids of its own
    else:
        fields["queue_id"] = int(message.sharding_key or -1)
    return fields


def local(text: str) -> GrpcTarget:
    """RocketMQ with its proxy on this machine, as `rocketmq-local:5.4.0+grpc:5.1.2`; its Python client works on it.

    Raises UsageError for what is not known.
    """
    asked = parse(TARGET, text, clients=(GRPC,), options=CHOICES)
    version = asked.head or rocketmq_proxy.DEFAULT
    rocketmq_proxy.check_version(version)
    library = PythonGrpc(asked.client_version or rocketmq_proxy.DEFAULT_CLIENT)
    options = {key: asked.options.get(key, known[0]) for key, known in CHOICES.items()}
    for key, given in options.items():
        if given not in CHOICES[key]:
            raise UsageError(f"{key} can't be {given!r}; {near(given, CHOICES[key])}")
    client = f"Apache gRPC client in Python {library.version}"
    pair = Pair(
        name=asked.named(TARGET),
        parties={
            "broker": f"Apache RocketMQ {version} with its proxy",
            "client": client,
            "producer": client,
        },
        profile=PROFILE,
        config=CONFIG,
        watched=False,
        open_system=lambda config, _watch: ProxiedApache(version, config),
        abilities=ProxiedApache.abilities | {Ability.OWN_SYSTEM},
    )
    return GrpcTarget(pair, library, options)
