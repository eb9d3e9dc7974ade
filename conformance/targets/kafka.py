"""`kafka-local:VERSION[+CLIENT:VERSION][,KEY=VALUE...]` and `kafka:HOST:PORT[...]`: Apache Kafka, by a driver's client.

The first starts a server of a released version on this machine (`conformance.parts.kafka`), the second speaks to one
that runs already. The clients are drivers in processes of their own. The options are the client library's settings
under its own names; what a plan's configuration says of sessions, heartbeats and commits goes to the library unless
an option says otherwise.

Queues are read, and stored offsets are told, by one more process that is in no group: an independent reader.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from conformance.drivers.admin import AdminTarget
from conformance.drivers.plans import STEADY
from conformance.drivers.process import DriverProcess, Event
from conformance.parts import kafka
from conformance.parts.kafka import KafkaServer
from conformance.parts.places import CHECKOUT
from conformance.targets.base import Run
from conformance.targets.options import Argument, parse
from specs.errors import UsageError
from specs.faults import broker_crash
from specs.plan.ability import Ability
from specs.plan.config import Config
from specs.plan.plan import Action

LIBRDKAFKA = "librdkafka"
CLIENTS = (LIBRDKAFKA,)
OPTIONS = frozenset(
    {
        "auto.commit.interval.ms",
        "auto.offset.reset",
        "client.rack",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.idempotence",
        "fetch.max.bytes",
        "fetch.message.max.bytes",
        "fetch.min.bytes",
        "fetch.wait.max.ms",
        "group.instance.id",
        "group.protocol",
        "group.remote.assignor",
        "heartbeat.interval.ms",
        "isolation.level",
        "linger.ms",
        "max.in.flight.requests.per.connection",
        "max.poll.interval.ms",
        "message.timeout.ms",
        "partition.assignment.strategy",
        "partitioner",
        "sasl.mechanism",
        "sasl.password",
        "sasl.username",
        "security.protocol",
        "session.timeout.ms",
        "ssl.ca.location",
        "ssl.certificate.location",
        "ssl.key.location",
        "ssl.key.password",
    }
)
"""What a target takes; the driver gives each to the part of the library that it is for."""
CONFIG = replace(
    STEADY,
    broker_lease_ms=2_000,
    client_lease_ms=1_000,
    lock_interval_ms=300,
    heartbeat_ms=300,
    channel_expiry_ms=2_000,
    persist_ms=200,
    persist_first_ms=200,
)
"""broker_lease_ms is the session: so long after a member's last word its partitions are another's. persist_ms is the
interval of automatic commits."""
NEW_PROTOCOL = "consumer"
DRIVER = CHECKOUT / "drivers" / "librdkafka" / "driver.py"
OPTIONS_VARIABLE = "INORDER_CLIENT_OPTIONS"


class Library(ABC):
    """A client library of one version, and how its driver is started."""

    name: str
    version: str

    @abstractmethod
    def ensure(self) -> None:
        """Fetch what it needs, if it is not here. Raises UsageError or TargetMisbehaved."""

    @abstractmethod
    def start(
        self,
        name: str,
        settings: Mapping[str, str],
        folder: Path,
        on_event: Callable[[Event], Any],
    ) -> DriverProcess:
        """The driver, running and not yet greeted. settings: of the library; they may hold credentials."""


class Librdkafka(Library):
    """driver: the program, which a test may put another in the place of."""

    name = LIBRDKAFKA

    def __init__(self, version: str, driver: Path = DRIVER) -> None:
        self._wheel = kafka.librdkafka(version)
        self.version = version
        self._driver = driver

    def ensure(self) -> None:
        if not DRIVER.is_file():
            raise UsageError("the driver of librdkafka lies in a source checkout, and this is none")
        self._wheel.ensure()

    def start(
        self,
        name: str,
        settings: Mapping[str, str],
        folder: Path,
        on_event: Callable[[Event], Any],
    ) -> DriverProcess:
        # The settings may hold credentials: they stand in no command line and in no log.
        env = {"PYTHONPATH": str(self._wheel.folder), OPTIONS_VARIABLE: json.dumps(dict(settings))}
        argv: list[str | Path] = [sys.executable, self._driver]
        log = folder / f"{name}.log"
        return DriverProcess(f"librdkafka {self.version} ({name})", argv, log, on_event, env)


class KafkaTarget(AdminTarget):
    """argument: what the user asked for. version: of the server that is started here; None where one runs already.

    The server is started by the first run and lives until `release`: topics and groups are new in each.
    """

    abilities = frozenset(
        {Ability.READ, Ability.CRASH_CLIENT, Ability.PAUSE_CLIENT, Ability.PROGRESS}
    )
    config: Config = CONFIG

    def __init__(
        self, name: str, argument: Argument, library: Library, version: str | None
    ) -> None:
        super().__init__()
        self.name = name
        self._argument = argument
        self._library = library
        self._version = version
        broker = "Apache Kafka" + (f" {version}" if version else f" at {argument.head}")
        client = f"{library.name} {library.version}"
        self.parties = {"broker": broker, "client": client, "producer": client}
        self.profile = profile_of(library, argument.options)
        self._server: KafkaServer | None = None
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._settings: dict[str, str] = {}
        if version is not None:
            self.abilities |= {Ability.CRASH_BROKER}

    async def prepare(self, run: Run) -> None:
        await asyncio.to_thread(self._open)
        config = run.plan.config
        own = {"bootstrap.servers": self._bootstrap, "client.id": "inorder"}
        if self._argument.options.get("group.protocol") != NEW_PROTOCOL:
            # With the new protocol these are the broker's own, and the library refuses to be given them.
            own["session.timeout.ms"] = str(config.broker_lease_ms)
            own["heartbeat.interval.ms"] = str(config.heartbeat_ms)
        own["auto.commit.interval.ms"] = str(config.persist_ms)
        self._settings = {**own, **self._argument.options, **self._argument.credentials}
        await super().prepare(run)

    def _open(self) -> None:
        self._library.ensure()
        if self._version is None or self._server is not None:
            return
        self._temporary = tempfile.TemporaryDirectory(prefix="inorder-kafka-")
        self._server = KafkaServer(self._version, workdir=Path(self._temporary.name))
        try:
            self._server.start()
        except BaseException:
            self.release()
            raise

    @property
    def _bootstrap(self) -> str:
        return self._server.bootstrap if self._server is not None else str(self._argument.head)

    def spawn_driver(
        self, name: str, folder: Path, on_event: Callable[[Event], Any]
    ) -> DriverProcess:
        return self._library.start(name, self._settings, folder, on_event)

    async def start(self, party: str) -> None:
        if self._server is not None and party in self.run.plan.topology.brokers:
            await asyncio.to_thread(self._server.start_again)
        else:
            await super().start(party)

    async def act(self, action: Action) -> None:
        if self._server is not None and action.do == broker_crash.VERB:
            await asyncio.to_thread(self._server.kill)
        else:
            await super().act(action)

    def release(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None


def profile_of(library: Library, options: Mapping[str, str]) -> str:
    """The profile of a client in one of its modes, as built."""
    protocol = "848" if options.get("group.protocol") == NEW_PROTOCOL else "classic"
    automatic = options.get("enable.auto.commit", "false").lower() == "true"
    return f"kafka-{protocol}-{library.name}{'-auto' if automatic else ''}"


def library_of(argument: Argument) -> Library:
    """The client that was asked for, or the default. Raises UsageError for an unknown version."""
    return Librdkafka(argument.client_version or kafka.DEFAULT_LIBRDKAFKA)


def local(text: str | None) -> KafkaTarget:
    """A released server on this machine. Raises UsageError for what is not known."""
    argument = parse("kafka-local", text, clients=CLIENTS, options=OPTIONS)
    if argument.head is None:
        raise UsageError(
            f"the target kafka-local needs a version, as in kafka-local:{kafka.DEFAULT}"
        )
    kafka.check_version(argument.head)
    return KafkaTarget(argument.named("kafka-local"), argument, library_of(argument), argument.head)


def remote(text: str | None) -> KafkaTarget:
    """One that runs already, by an address of one of its brokers. Raises UsageError."""
    argument = parse("kafka", text, clients=CLIENTS, options=OPTIONS)
    host, colon, port = (argument.head or "").rpartition(":")
    if not host or not colon or not port.isdecimal():
        raise UsageError("the target kafka needs a broker's address, as in kafka:127.0.0.1:9092")
    return KafkaTarget(argument.named("kafka"), argument, library_of(argument), None)
