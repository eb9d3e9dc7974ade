"""`rabbitmq-local:VERSION[+pika:VERSION][,KEY=VALUE...]` and `rabbitmq:HOST:PORT[...]`: RabbitMQ, through pika.

The first starts a server on this machine (`conformance.parts.rabbitmq`), the second speaks to one that runs already,
where all that is made begins with `inorder-`. The clients are drivers in processes of their own.

A lane is a queue of RabbitMQ's with a single active consumer, one for each group and routing key. The server says whose
turn it is and tells nobody: a member's work on a lane begins with its first delivery, which is a grant, and ends when
it closes its channel, which is an UNLOCK; each acknowledgement that the server took is a grant anew, for only a living
channel's is.

Such a queue numbers nothing. Messages carry when they were published, and a history has their places by that; what was
published is read out of a log, a queue of each routing key that no group has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Self

from conformance.drivers.deaths import at_last_words
from conformance.drivers.library import InPython
from conformance.drivers.plans import STEADY
from conformance.drivers.published import confirmed, placed
from conformance.drivers.served import ServedTarget
from conformance.parts import rabbitmq
from conformance.parts.places import beside
from conformance.parts.rabbitmq import RabbitServer
from conformance.targets.base import Run
from conformance.targets.options import Argument
from specs.history.row import Row
from specs.history.runinfo import declared
from specs.plan.ability import Ability
from specs.plan.config import Config, config_of
from specs.plan.plan import ListenerRule, Plan
from specs.vocabulary import Kind, Level

PIKA = "pika"
QUEUE, PREFETCH = "app.queue", "app.prefetch"
CHOICES: Mapping[str, tuple[str, ...]] = {
    QUEUE: ("classic", "quorum"),
    PREFETCH: ("1", "2", "5", "20"),
}
"""What the application does (drivers/pika); the first is the default."""
OPTIONS = frozenset({*CHOICES, "password", "tls_ca", "username", "virtual_host"})
"""What a target takes; `tls_ca` is a file of certificates."""
CONFIG = replace(
    STEADY,
    broker_lease_ms=2_000,
    rebalance_ms=250,
    batch=1,
)
"""broker_lease_ms is the heartbeat: a client that is silent for so long, or somewhat longer, loses its connection."""
TOLD = (
    "batch",
    "broker_lease_ms",
    "client_lease_ms",
    "consume_from",
    "message_model",
    "mode",
    "subscription",
    "suspend_ms",
)
NO_LIMIT = {"max_reconsume_times": -1}
WORK_MS = 500
"""So long a call takes where a member is handed several messages: some are to lie with it when it goes."""


class Pika(InPython):
    """Its wheel, and our driver of it."""

    name = PIKA
    wheel = rabbitmq.client
    program = beside("drivers") / "pika" / "driver.py"


class RabbitTarget(ServedTarget):
    """A server, and pika at work on it."""

    abilities = frozenset({Ability.READ, Ability.CRASH_CLIENT, Ability.PAUSE_CLIENT})
    system = "rabbitmq"
    server = RabbitServer
    port = 5672
    clients = (PIKA,)
    knows = OPTIONS
    choices = CHOICES
    config: Config = CONFIG
    handed_out = True
    reads_at_work = True
    behind_link = True
    scheme = "amqp"

    def __init__(
        self, argument: Argument, version: str | None, library: Pika, keeper: Pika
    ) -> None:
        super().__init__(argument, version, library, keeper)
        self.profile = f"rabbitmq-{self.options[QUEUE]}"

    @classmethod
    def made(cls, argument: Argument, version: str | None) -> Self:
        library = Pika(argument.client_version or rabbitmq.DEFAULT_CLIENT)
        return cls(argument, version, library, Pika(rabbitmq.DEFAULT_CLIENT))

    def own_settings(self, run: Run, address: str) -> dict[str, str]:
        heartbeat_s = max(1, run.plan.config.broker_lease_ms // 1000)
        return {"server": address, "heartbeat": str(heartbeat_s), **self.options}

    def suited(self, plan: Plan) -> Plan:
        """A call has one message; where several are handed out, it takes its time."""
        plan = replace(plan, config=replace(plan.config, batch=1))
        slowly = ListenerRule(duration_ms=WORK_MS)
        if self.options[PREFETCH] == "1" or slowly in plan.listener:
            return plan
        rules = (replace(rule, duration_ms=WORK_MS) for rule in plan.listener)
        return replace(plan, listener=(slowly, *rules))

    def settings(self, plan: Plan) -> Config:
        """What the driver and the server are told. Nothing is given up."""
        ours = plan.config.to_json()
        return config_of({"system": "rabbitmq", **{name: ours[name] for name in TOLD}, **NO_LIMIT})

    @property
    def records(self) -> Mapping[str, tuple[str, ...]]:  # type: ignore[override]
        """Besides what the drivers tell: whose a lane is.

        Nobody looks up where to begin, for the server knows, and nobody is told to go on elsewhere.
        """
        told = {Kind(kind) for kind in super().records[Level.CLIENT]}
        return declared(client=told | {Kind.LOCK, Kind.UNLOCK, Kind.PULL, Kind.FETCH_OFFSET})

    def completed(self, rows: list[Row]) -> list[Row]:
        return at_last_words([begun(row) for row in placed(confirmed(rows))])


def begun(row: Row) -> Row:
    """An ADD with where the work begins: a group's queues were there before the first message."""
    return row._replace(value=0) if row.kind is Kind.ADD else row


def local(text: str | None) -> RabbitTarget:
    """A RabbitMQ server on this machine, as `rabbitmq-local:3.10.8`; pika works on it.

    Raises UsageError for what is not known.
    """
    return RabbitTarget.local(text)


def remote(text: str | None) -> RabbitTarget:
    """A RabbitMQ server that runs already, by its address. Raises UsageError for what is no address."""
    return RabbitTarget.remote(text)
