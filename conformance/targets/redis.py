"""`redis-local:VERSION[+redis-py:VERSION][,KEY=VALUE...]` and `redis:HOST:PORT[...]`: Redis Streams, through redis-py.

The first starts a server of a released version on this machine (`conformance.parts.redis`), the second speaks to one
that runs already, where all that is made begins with `inorder-`. The clients are drivers in processes of their own.

A queue is a stream, and its offsets count the stream's entries. Redis hands out a stream's entries in their order, but
side by side to all consumers of a group: so the application has one at work on a stream at a time, by a lease that it
asks for. Being given it is a grant, giving it back is an UNLOCK, and each acknowledgement that was accepted, which
looks at the lease and renews it, is a grant anew.

Streams are read past every group. While the clients work a witness asks the server how far each group has come without
a gap (XPENDING, and the last id that was handed out): PROGRESS at level `store`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Self

from conformance.drivers.admin import ignore
from conformance.drivers.library import InPython
from conformance.drivers.plans import STEADY
from conformance.drivers.served import ServedTarget
from conformance.drivers.witness import WITNESS, Witness
from conformance.parts import redis
from conformance.parts.places import beside
from conformance.parts.redis import RedisServer
from conformance.targets.base import Run
from conformance.targets.options import Argument
from specs.history.runinfo import declared
from specs.plan.ability import Ability
from specs.plan.config import Config, config_of
from specs.plan.plan import Plan
from specs.vocabulary import Kind, Level

REDIS_PY = "redis-py"
FENCE, RETRIES, STATES = "app.fence", "app.retries", "app.states"
CHOICES: Mapping[str, tuple[str, ...]] = {
    FENCE: ("script", "none"),
    RETRIES: ("none", "default"),
    STATES: ("false", "true"),
}
"""What the application does (drivers/redis-py); the first is the default."""
OPTIONS = frozenset({*CHOICES, "password", "tls_ca", "username"})
"""What a target takes; `tls_ca` is a file of certificates."""
CONFIG = replace(
    STEADY,
    broker_lease_ms=1_500,
    rebalance_ms=250,
    batch=1,
)
"""broker_lease_ms is the application's lease of a stream."""
TOLD = (
    "batch",
    "broker_lease_ms",
    "client_lease_ms",
    "consume_from",
    "message_model",
    "mode",
    "rebalance_ms",
    "subscription",
    "suspend_ms",
)
NO_LIMIT = {"max_reconsume_times": -1}
LOOK_EVERY_S = 0.1
LEASE_SLACK_MS = 300
"""By so much a lease is longer than a history says: it counts there from when the answer came, and in the server from
when it was granted."""


class RedisPy(InPython):
    """Its wheel, and our driver of it."""

    name = REDIS_PY
    wheel = redis.client
    program = beside("drivers") / "redis-py" / "driver.py"


class RedisTarget(ServedTarget):
    """A server, and redis-py at work on it."""

    abilities = frozenset({Ability.READ, Ability.CRASH_CLIENT, Ability.PAUSE_CLIENT})
    system = "redis"
    server = RedisServer
    port = 6379
    clients = (REDIS_PY,)
    knows = OPTIONS
    choices = CHOICES
    profile = "redis-streams"
    config: Config = CONFIG
    handed_out = True
    reads_at_work = True
    behind_link = True
    scheme = "redis"

    @classmethod
    def made(cls, argument: Argument, version: str | None) -> Self:
        library = RedisPy(argument.client_version or redis.DEFAULT_CLIENT)
        return cls(argument, version, library, RedisPy(redis.DEFAULT_CLIENT))

    def own_settings(self, run: Run, address: str) -> dict[str, str]:
        config = run.plan.config
        return {
            "server": address,
            "lease_ms": str(config.broker_lease_ms + LEASE_SLACK_MS),
            "balance_ms": str(config.rebalance_ms),
            **self.options,
        }

    def witness(self, run: Run) -> Witness | None:
        driver = self.keeper.start(WITNESS, self.keepers_settings, run.folder, ignore)
        return Witness(run, driver, every_s=LOOK_EVERY_S, commits=False)

    def suited(self, plan: Plan) -> Plan:
        """A call has one message."""
        return replace(plan, config=replace(plan.config, batch=1))

    def settings(self, plan: Plan) -> Config:
        """What the driver is told. Nothing is given up."""
        ours = plan.config.to_json()
        return config_of({"system": "redis", **{name: ours[name] for name in TOLD}, **NO_LIMIT})

    @property
    def records(self) -> Mapping[str, tuple[str, ...]]:  # type: ignore[override]
        """Besides what the drivers tell: whose a stream is, and what the witness saw.

        Nobody who reads is told to go on elsewhere, for no message that was sent is removed.
        """
        told = {Kind(kind) for kind in super().records[Level.CLIENT]}
        told |= {Kind.LOCK, Kind.UNLOCK, Kind.PULL}
        return declared(client=told, store={Kind.PROGRESS})


def local(text: str | None) -> RedisTarget:
    """A released Redis server on this machine, as `redis-local:7.0.15`; redis-py works on it.

    Raises UsageError for what is not known.
    """
    return RedisTarget.local(text)


def remote(text: str | None) -> RedisTarget:
    """A Redis server that runs already, by its address. Raises UsageError for what is no address."""
    return RedisTarget.remote(text)
