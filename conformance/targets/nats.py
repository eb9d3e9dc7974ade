"""`nats-local:VERSION[+nats-py:VERSION][,KEY=VALUE...]` and `nats:HOST:PORT[...]`: NATS JetStream, through nats-py.

The first starts a server of a released version on this machine (`conformance.parts.nats`), the second speaks to one
that runs already, where all that is made begins with `inorder-`. The clients are drivers in processes of their own.

A topic is a stream, a queue one of its subjects. A group is, for each queue, a durable pull consumer with one message
outstanding, which its members share; whose work a lane is then says `conformance.drivers.message_leases`. With
`app.consumer=ordered` each member reads everything for itself, and so is a group of its own; with `app.outstanding=4`
so many messages of a queue may be outstanding, and no order is promised.

Streams are read by their messages' numbers, past every consumer. While the clients work a witness asks the server how
far each consumer's acknowledgements go without a gap: PROGRESS at level `store`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Self

from conformance.drivers.admin import ignore
from conformance.drivers.library import InPython, Library
from conformance.drivers.message_leases import first_tenures, with_tenures
from conformance.drivers.plans import STEADY
from conformance.drivers.served import NODES, ServedTarget
from conformance.drivers.witness import WITNESS, Witness
from conformance.parts import nats
from conformance.parts.nats import NatsServer
from conformance.parts.places import beside
from conformance.targets import upgrades
from conformance.targets.base import Run
from conformance.targets.options import Argument
from specs.history.row import Row
from specs.history.runinfo import declared
from specs.plan.ability import Ability
from specs.plan.config import Config, config_of
from specs.plan.plan import ListenerRule, Plan
from specs.vocabulary import Kind, Level

NATS_PY = "nats-py"
CONSUMER, FILTERS, LATE, ROLLUPS = "app.consumer", "app.filters", "app.late.acks", "app.rollups"
OUTSTANDING = "app.outstanding"
ORDERED = "ordered"
CHOICES: Mapping[str, tuple[str, ...]] = {
    CONSUMER: ("queue", ORDERED),
    FILTERS: ("one", "below", "state", "wild"),
    LATE: ("drop", "send"),
    NODES: ("1", "3"),
    OUTSTANDING: ("1", "4"),
    ROLLUPS: ("false", "true"),
}
"""What the application does (drivers/nats-py); the first is the default."""
OPTIONS = frozenset(
    {
        *CHOICES,
        upgrades.OPTION,
        "nkeys_seed_str",
        "password",
        "tls_ca",
        "token",
        "user",
        "user_credentials",
    }
)
"""What a target takes; the last six are nats-py's own (`tls_ca`: a file of certificates)."""
CONFIG = replace(
    STEADY,
    broker_lease_ms=1_500,
    rebalance_ms=250,
    batch=1,
)
"""broker_lease_ms is `ack_wait`: so long after it was handed out an unacknowledged message is handed out again."""
TOLD = (
    "batch",
    "broker_lease_ms",
    "consume_from",
    "message_model",
    "mode",
    "subscription",
    "suspend_ms",
)
KEEPS_ALL = {"compaction": False}
"""Streams are always the driver's own, without a limit for each subject."""
NO_LIMIT = {"max_reconsume_times": -1}
POLL_MS, SPARE_MS = 400, 100
"""Of `ack_wait` the driver counts against a call how long it may have polled for the message, and a rest to be safe."""
LOOK_EVERY_S = 0.1
WORK_MS = 20
"""So long a call takes where each message is followed by a rollup: it is to come while one is in work."""
SHARED_MS = 600
"""So long it takes where several are outstanding: another one mostly is, when one is acknowledged."""


class NatsPy(InPython):
    """Its wheel, and our driver of it."""

    name = NATS_PY
    wheel = nats.client
    program = beside("drivers") / "nats-py" / "driver.py"


class NatsTarget(ServedTarget):
    """A server, and nats-py at work on it."""

    abilities = frozenset({Ability.READ, Ability.CRASH_CLIENT, Ability.PAUSE_CLIENT})
    system = "nats"
    server = NatsServer
    port = 4222
    clients = (NATS_PY,)
    knows = OPTIONS
    choices = CHOICES
    config: Config = CONFIG
    reads_at_work = True
    behind_link = True
    lists = True
    scheme = "nats"
    call_ms_max = CONFIG.broker_lease_ms - POLL_MS - SPARE_MS

    def __init__(self, argument: Argument, version: str | None, library: Library) -> None:
        super().__init__(argument, version, library, NatsPy(nats.DEFAULT_CLIENT))
        self._is_ordered = self.options[CONSUMER] == ORDERED
        self.profile = profile_of(self.options)

    @classmethod
    def made(cls, argument: Argument, version: str | None) -> Self:
        return cls(argument, version, NatsPy(argument.client_version or nats.DEFAULT_CLIENT))

    def own_settings(self, run: Run, address: str) -> dict[str, str]:
        lease_s = run.plan.config.broker_lease_ms / 1000
        servers = ",".join(f"nats://{each}" for each in address.split(","))
        return {"servers": servers, "ack_wait": str(lease_s), **self.options}

    async def prepare(self, run: Run) -> None:
        """Raises Unavailable where no server is that somebody has named."""
        await super().prepare(run)
        if not self._is_ordered:
            first_tenures(run, [queue for queue, _ in self.queues(run)])

    def witness(self, run: Run) -> Witness | None:
        if self._is_ordered:
            return None
        driver = self.keeper.start(WITNESS, self.keepers_settings, run.folder, ignore)
        return Witness(run, driver, every_s=LOOK_EVERY_S, commits=False)

    def suited(self, plan: Plan) -> Plan:
        """A call has one message; who reads for itself is a group of its own."""
        plan = replace(plan, config=replace(plan.config, batch=1))
        rule = ListenerRule(duration_ms=work_ms(self.options))
        if rule.duration_ms and rule not in plan.listener:
            plan = replace(plan, listener=(rule, *plan.listener))
        if not self._is_ordered or any(client.id == client.group for client in plan.clients):
            return plan
        clients = tuple(
            replace(client, group=client.id) if client.group else client for client in plan.clients
        )
        groups = tuple(client.group for client in clients if client.group)
        return replace(plan, clients=clients, topology=replace(plan.topology, groups=groups))

    def settings(self, plan: Plan) -> Config:
        """What the driver and the server's consumers are told. Without `max_deliver` nothing is given up."""
        ours = plan.config.to_json()
        told = {name: ours[name] for name in TOLD}
        return config_of({"system": "nats", **told, **NO_LIMIT, **KEEPS_ALL})

    @property
    def records(self) -> Mapping[str, tuple[str, ...]]:  # type: ignore[override]
        """Besides what the drivers tell: whose the lanes are, and what the witness saw.

        Nobody looks up where to begin, for the server's consumer knows, and it drops no lane. Nobody who pulls is told
        to go on elsewhere, for nothing that was sent is removed.
        """
        told = {Kind(kind) for kind in super().records[Level.CLIENT]} | {Kind.PULL}
        if self._is_ordered:
            return declared(client=told)
        told |= {Kind.ADD, Kind.DROP, Kind.FETCH_OFFSET}
        return declared(client=told, store={Kind.PROGRESS})

    def completed(self, rows: list[Row]) -> list[Row]:
        if self._is_ordered:
            return rows
        return with_tenures(rows, self.run.plan.config.broker_lease_ms)


def work_ms(options: Mapping[str, str]) -> int:
    """How long a call takes; 0: as the plan says."""
    if options[CONSUMER] != ORDERED and options[OUTSTANDING] != "1":
        return SHARED_MS
    return WORK_MS if options[ROLLUPS] == "true" else 0


def profile_of(options: Mapping[str, str]) -> str:
    """The profile of a mode, as built."""
    if options[CONSUMER] == ORDERED:
        return "nats-ordered"
    if options[OUTSTANDING] != "1":
        return "nats-shared"
    return "nats-queue-late" if options[LATE] == "send" else "nats-queue"


def local(text: str | None) -> NatsTarget:
    """A released NATS server on this machine, as `nats-local:2.15.2`; nats-py works on it.

    Raises UsageError for what is not known.
    """
    return NatsTarget.local(text)


def remote(text: str | None) -> NatsTarget:
    """A NATS server that runs already, by its address. Raises UsageError for what is no address."""
    return NatsTarget.remote(text)
