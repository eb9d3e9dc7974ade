"""`kafka-local:VERSION[+CLIENT:VERSION][,KEY=VALUE...]` and `kafka:HOST:PORT[...]`: Apache Kafka, by a driver's client.

The first starts a server of a released version on this machine (`conformance.parts.kafka`), the second speaks to one
that runs already. The clients are drivers in processes of their own. The options are the client library's settings
under its own names; what a plan's configuration says of sessions, heartbeats and commits goes to the library unless
an option says otherwise.

Queues are read by one more process that is in no group: an independent reader.

Where the library commits by itself nobody tells when. There a witness (`conformance.drivers.witness`) asks the brokers
all the time what they have stored of the group, and its COMMIT is that of whoever owned the lane when the answer came.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

from conformance.drivers.admin import ignore
from conformance.drivers.java import JVM, compiled
from conformance.drivers.library import OPTIONS_VARIABLE, InPython, Library
from conformance.drivers.plans import STEADY
from conformance.drivers.served import NODES, ServedTarget
from conformance.drivers.witness import WITNESS, Witness
from conformance.parts import kafka, kafka_go
from conformance.parts.java import java
from conformance.parts.kafka import KafkaServer
from conformance.parts.places import beside
from conformance.targets.base import Run
from conformance.targets.options import Argument
from specs.documents import from_json
from specs.errors import UsageError
from specs.history.row import Row
from specs.history.runinfo import declared
from specs.plan.ability import Ability
from specs.plan.config import Config, config_of
from specs.plan.plan import ListenerRule, Plan
from specs.profiles import Profile
from specs.vocabulary import Kind, Lane, Level

LIBRDKAFKA = "librdkafka"
JAVA = "java"
GO = "go"
CLIENTS = (GO, JAVA, LIBRDKAFKA)
IN_FLIGHT = "app.in.flight"
"""So many sends of a producer may be unanswered; the others wait. 1, the default, sends one after the other."""
ON_FAILURE = "app.on.failure"
"""What the application of librdkafka's driver does with a failed record's lane: `wait`, or `pause` it meanwhile."""
TRANSACTIONS = "app.transactions"
"""Whether a producer sends in transactions, of which it aborts every fourth."""
CONSUMER = "app.consumer"
SHARED = "share"
"""Consumers are members of a share group: nobody owns a partition."""
CHOICES: Mapping[str, tuple[str, ...]] = {
    CONSUMER: ("group", SHARED),
    NODES: ("1", "3"),
    TRANSACTIONS: ("false", "true"),
}
"""The first is the default."""
SERVER = "server."
OF_SERVERS = frozenset(
    f"{SERVER}{name}"
    for name in (
        "min.insync.replicas",
        "replica.fetch.min.bytes",
        "replica.fetch.wait.max.ms",
        "unclean.leader.election.enable",
    )
)
"""Settings of the nodes that are started here, behind a word of ours."""
OPTIONS = frozenset(
    {
        *CHOICES,
        *OF_SERVERS,
        IN_FLIGHT,
        ON_FAILURE,
        "acks",
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
        "request.timeout.ms",
        "retries",
        "retry.backoff.ms",
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
OF_THE_APPLICATION = frozenset({IN_FLIGHT, "enable.auto.commit", "enable.auto.offset.store"})
"""What the driver in Go decides itself."""
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
TOLD = (
    "batch",
    "broker_lease_ms",
    "client_lease_ms",
    "consume_from",
    "message_model",
    "mode",
    "persist_first_ms",
    "persist_ms",
    "subscription",
)
NO_LIMIT = {"max_reconsume_times": -1}
ENDS_BY_ITSELF = {
    "transaction_timeout_ms": 60_000,
    "transaction_check_interval_ms": 1_000,
    "transaction_check_max": 0,
}
"""The library's `transaction.timeout.ms`; no broker asks a producer how its transaction is to end."""
IN_ONE, ABORTED = 3, 4
"""Messages in a transaction, and which of the transactions are aborted."""
NEW_PROTOCOL = "consumer"
SESSION, HEARTBEAT = "session.timeout.ms", "heartbeat.interval.ms"
MIN_SESSION_MS, MAX_SESSION_MS = 6_000, 1_800_000
"""What a broker allows by default (group.min.session.timeout.ms, group.max.session.timeout.ms)."""
BROKERS_SESSION_MS, BROKERS_HEARTBEAT_MS = 45_000, 5_000
"""What a broker tells the members of a group whose protocol is its own, by default."""
LOOK_EVERY_S = 0.02
RECONNECT_MS = 500
DIGITS_MAX = 9
LIMITS_S = 60.0
"""So long the brokers have to say which sessions they allow, before any run."""
WORK_MS = 20
"""So long a call takes where the library commits by itself: long enough for the witness to look meanwhile."""
SESSION_SLACK = 2
"""Heartbeats by which a session is longer than the lease that a history speaks of: so long before an accepted commit a
member may have been heard for the last time."""
JAVA_DRIVER = beside("drivers") / "kafka-java" / "Driver.java"


class Librdkafka(InPython):
    """Its wheel, and our driver of it."""

    name = LIBRDKAFKA
    wheel = kafka.librdkafka
    program = beside("drivers") / "librdkafka" / "driver.py"

    def limits(self, settings: Mapping[str, str]) -> Mapping[str, str]:
        """What brokers say of the sessions that they allow; `error` where none answers."""
        argv, env = self.command()
        asks = self.program.with_name("limits.py")
        done = subprocess.run(
            [*argv[:-1], asks],
            env={**os.environ, **env, OPTIONS_VARIABLE: json.dumps(dict(settings))},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMITS_S,
            check=False,
        )
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            return {"error": lines[-1]}
        found: dict[str, str] = from_json(done.stdout)
        return found


class JavaClient(Library):
    """Apache's own."""

    name = JAVA

    def __init__(self, version: str) -> None:
        self._jars = kafka.client_jars(version)
        self.version = version

    def ensure(self) -> None:
        self._classes()

    def _classes(self) -> Path:
        lib = self._jars.ensure()
        return compiled(JAVA_DRIVER, lambda: lib, f"kafka-java/{self.version}", self.version)

    def command(self) -> tuple[Sequence[str | Path], Mapping[str, str]]:
        path = f"{self._classes()}{os.pathsep}{self._jars.folder}/*"
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        return [java(), *JVM, quiet, "-cp", path, "Driver"], {}


class GoClient(Library):
    """confluent-kafka-go, which carries librdkafka. Its application stores offsets and commits what is stored."""

    name = GO

    def __init__(self, version: str) -> None:
        kafka_go.DRIVER.check_version(version)
        self.version = version

    def ensure(self) -> None:
        kafka_go.DRIVER.ensure(self.version)

    def command(self) -> tuple[Sequence[str | Path], Mapping[str, str]]:
        return [kafka_go.DRIVER.ensure(self.version)], {}


class KafkaTarget(ServedTarget):
    """A server, and librdkafka or Apache's Java client at work on it."""

    abilities = frozenset({Ability.READ, Ability.CRASH_CLIENT, Ability.PAUSE_CLIENT})
    system = "kafka"
    server = KafkaServer
    port = 9092
    clients = CLIENTS
    knows = OPTIONS
    choices = CHOICES
    of_servers = OF_SERVERS
    config: Config = CONFIG
    handed_out = True
    reads_at_work = True
    behind_link = True
    lists = True

    def __init__(self, argument: Argument, version: str | None, library: Library) -> None:
        shared = argument.options.get(CONSUMER) == SHARED
        keeper = library if shared else Librdkafka(kafka.DEFAULT_LIBRDKAFKA)
        super().__init__(argument, version, library, keeper)
        if shared and version not in (None, kafka.SHARE_SERVER):
            raise UsageError(f"{CONSUMER}={SHARED} needs the server {kafka.SHARE_SERVER}")
        self.profile = profile_of(library, argument.options)
        self.handed_out = self.sleeps = not shared
        self._automatic = is_automatic(argument.options)
        self._limits: Mapping[str, str] | None = None if version is None else {}
        self.config = self._with_session({})

    def config_for(self, profile: Profile) -> Config:
        """With a session that the brokers allow: they are asked, once. Raises as `prepare` does."""
        if self._limits is None:
            self._limits = limits = self._asked_limits()
            self.config = self._with_session(limits)
        return super().config_for(profile)

    def _with_session(self, limits: Mapping[str, str]) -> Config:
        """The configuration with the sessions that its members will have. limits: what the brokers say of themselves.

        Raises UsageError for a session that they do not allow, or that is too short for its heartbeats.
        """
        protocol = self._brokers_protocol
        if protocol:
            if self._version is not None:
                return CONFIG
            session = limits.get(f"group.{protocol}.{SESSION}", BROKERS_SESSION_MS)
            heartbeat = limits.get(f"group.{protocol}.{HEARTBEAT}", BROKERS_HEARTBEAT_MS)
            return _lasting(int(session), int(heartbeat))
        least = int(limits.get(f"group.min.{SESSION}", MIN_SESSION_MS))
        most = int(limits.get(f"group.max.{SESSION}", MAX_SESSION_MS))
        ours = CONFIG.broker_lease_ms + SESSION_SLACK * CONFIG.heartbeat_ms
        chosen = ours if self._version is not None else min(max(ours, least), most)
        session = number_of(self._argument.options, SESSION, chosen)
        if limits and not least <= session <= most:
            raise UsageError(
                f"the brokers at {self.address} allow a {SESSION} from {least} to {most}, not {session}"
            )
        return _lasting(session, number_of(self._argument.options, HEARTBEAT, CONFIG.heartbeat_ms))

    @property
    def _brokers_protocol(self) -> str:
        """How a broker calls the groups whose sessions are its own to say; empty where they are the client's."""
        if self._argument.options.get(CONSUMER) == SHARED:
            return SHARED
        protocol = self._argument.options.get("group.protocol")
        return NEW_PROTOCOL if protocol == NEW_PROTOCOL else ""

    def _asked_limits(self) -> Mapping[str, str]:
        """Raises Unavailable where nobody listens there, or no broker of Kafka's answers."""
        self._reach()
        keeper = Librdkafka(self.keeper.version)
        keeper.ensure()
        settings = {**self._argument.options, **self._argument.credentials}
        found = keeper.limits({**settings, "bootstrap.servers": self.address})
        if "error" in found:
            raise self.unanswered(found["error"])
        return found

    @classmethod
    def made(cls, argument: Argument, version: str | None) -> Self:
        return cls(argument, version, library_of(argument))

    def made_server(self, version: str, folder: Path) -> KafkaServer:
        given = self._argument.options
        more = {name.removeprefix(SERVER): given[name] for name in given if name in OF_SERVERS}
        return KafkaServer(version, workdir=folder, more=more)

    def own_settings(self, run: Run, address: str) -> dict[str, str]:
        config = run.plan.config
        own = {"bootstrap.servers": address, "client.id": "inorder"}
        if not self._brokers_protocol:
            # With the new protocol these are the broker's own, and the library refuses to be given them.
            session_ms = config.broker_lease_ms + SESSION_SLACK * config.heartbeat_ms
            own[SESSION] = str(session_ms)
            own[HEARTBEAT] = str(config.heartbeat_ms)
        own["auto.commit.interval.ms"] = str(config.persist_ms)
        # Else a client may look for a server that lives again only ten seconds later.
        own["reconnect.backoff.max.ms"] = str(RECONNECT_MS)
        return own

    def witness(self, run: Run) -> Witness | None:
        if not self._automatic:
            return None
        driver = self.keeper.start(WITNESS, self.keepers_settings, run.folder, ignore)
        return Witness(run, driver, every_s=LOOK_EVERY_S, commits=True)

    def suited(self, plan: Plan) -> Plan:
        """Where the library commits by itself, work takes as long as a look at what is stored."""
        if self.options[TRANSACTIONS] == "true":
            plan = in_transactions(plan)
        if not self._automatic or ListenerRule(duration_ms=WORK_MS) in plan.listener:
            return plan
        return replace(plan, listener=(ListenerRule(duration_ms=WORK_MS), *plan.listener))

    def settings(self, plan: Plan) -> Config:
        """What the driver and the library are told, and that groups but those that share records have generations.

        Kafka knows neither a limit of retries nor RocketMQ's timers.
        """
        ours = plan.config.to_json()
        told = {name: ours[name] for name in TOLD}
        told["in_flight"] = int(self._argument.options.get(IN_FLIGHT, "1"))
        told["generations"] = self.handed_out
        if self._version is not None:  # the server that was started here keeps all
            told["compaction"] = False
        return config_of({"system": "kafka", **told, **NO_LIMIT, **ENDS_BY_ITSELF})

    @property
    def records(self) -> Mapping[str, tuple[str, ...]]:  # type: ignore[override]
        """Besides what the drivers tell: who was given what, and what the witness saw."""
        told = {Kind(kind) for kind in super().records[Level.CLIENT]}
        if self.handed_out and {Kind.ADD, Kind.DROP} <= told:
            told |= {Kind.LOCK, Kind.UNLOCK}
        if self._version is not None:
            # A fetch that is told to go on elsewhere would excuse much. Only a record that is gone makes a broker
            # say so, and the server that was started here keeps all of them.
            told |= {Kind.PULL}
        if not self._automatic:
            return declared(client=told)
        return declared(client=told, wire={Kind.COMMIT}, store={Kind.PROGRESS})

    def completed(self, rows: list[Row]) -> list[Row]:
        """A commit that the witness saw is that of who owned the lane at that moment."""
        owners: dict[Lane, list[Row]] = {}
        for row in rows:
            if row.kind is Kind.ADD:
                owners.setdefault(row.lane, []).append(row)
        seen = {row.seq_begin for row in rows if row.process == WITNESS and row.kind is Kind.COMMIT}
        return [_owned(row, owners) if row.seq_begin in seen else row for row in rows]


def _lasting(session_ms: int, heartbeat_ms: int) -> Config:
    """The configuration of members with that session. Raises UsageError where it is too short for its heartbeats."""
    lease_ms = session_ms - SESSION_SLACK * heartbeat_ms
    if lease_ms <= heartbeat_ms:
        raise UsageError(
            f"a {SESSION} of {session_ms} is too short for a {HEARTBEAT} of {heartbeat_ms}: let it be more than "
            f"{SESSION_SLACK + 1} of them"
        )
    return replace(
        CONFIG,
        broker_lease_ms=lease_ms,
        client_lease_ms=lease_ms // 2,
        heartbeat_ms=heartbeat_ms,
        channel_expiry_ms=lease_ms,
    )


def number_of(options: Mapping[str, str], name: str, otherwise: int) -> int:
    """A number of ms among the options. Raises UsageError for what is none."""
    text = options.get(name, str(otherwise))
    if not text.isdecimal() or len(text) > DIGITS_MAX:
        raise UsageError(f"{name} is a number of ms, not {text!r}")
    return int(text)


def _owned(row: Row, owners: Mapping[Lane, list[Row]]) -> Row:
    """With the incarnation that was the last to be given the lane; none before the first."""
    before = [add for add in owners.get(row.lane, ()) if add.seq_begin < row.seq_begin]
    if not before:
        return row
    owner = max(before, key=lambda add: add.seq_begin)
    return row._replace(client_id=owner.client_id, incarnation=owner.incarnation)


def in_transactions(plan: Plan) -> Plan:
    """Each send becomes a transaction of some messages; every fourth is aborted."""
    number, actions = 0, []
    for action in plan.actions:
        if action.do == "send":
            number += 1
            ends = "commit" if number % ABORTED else "rollback"
            args = {**action.args, "count": IN_ONE, "ends": ends, "checked": ends}
            action = replace(action, do="send_half", args=args)
        actions.append(action)
    return plan.with_actions(actions)


def is_automatic(options: Mapping[str, str]) -> bool:
    """Does the library commit by itself?"""
    return options.get("enable.auto.commit", "false").lower() == "true"


def profile_of(library: Library, options: Mapping[str, str]) -> str:
    """The profile of a client in one of its modes, as built. The protocol of groups changes no promise."""
    mode = ""
    if options.get(CONSUMER) == SHARED:
        return "kafka-share"
    if is_automatic(options):
        stores = options.get("enable.auto.offset.store", "true").lower() == "true"
        mode = "-auto" if stores else "-stored"
    elif options.get(TRANSACTIONS) == "true":
        mode = "-transactions"
    return f"kafka-{library.name}{mode}"


def library_of(argument: Argument) -> Library:
    """The client that was asked for, or the default. Raises UsageError for an unknown version."""
    in_flight = argument.options.get(IN_FLIGHT, "1")
    if not in_flight.isdecimal() or in_flight == "0":
        raise UsageError(f"{IN_FLIGHT} is a number of sends, at least 1, not {in_flight!r}")
    on_failure = argument.options.get(ON_FAILURE, "wait")
    if on_failure not in ("wait", "pause"):
        raise UsageError(f"{ON_FAILURE} is wait or pause, not {on_failure!r}")
    transactions = argument.options.get(TRANSACTIONS, "false") == "true"
    if transactions and is_automatic(argument.options):
        raise UsageError(f"{TRANSACTIONS} goes with commits by the application")
    if argument.options.get(CONSUMER) == SHARED:
        version = argument.client_version or kafka.SHARE
        if argument.client not in (None, LIBRDKAFKA) or version != kafka.SHARE:
            raise UsageError(f"{CONSUMER}={SHARED} is librdkafka's, from {kafka.SHARE} on")
        if transactions or on_failure != "wait" or is_automatic(argument.options):
            raise UsageError(f"{CONSUMER}={SHARED} goes with no other setting of consumers")
        return Librdkafka(version)
    if argument.client in (None, LIBRDKAFKA):
        return Librdkafka(argument.client_version or kafka.DEFAULT_LIBRDKAFKA)
    if transactions:
        raise UsageError(f"{TRANSACTIONS} is a setting of librdkafka's driver alone")
    if on_failure != "wait":
        raise UsageError(f"{ON_FAILURE} is a setting of librdkafka's driver alone")
    if argument.client == JAVA:
        return JavaClient(argument.client_version or kafka.DEFAULT_JAVA)
    if theirs := sorted(OF_THE_APPLICATION & argument.options.keys()):
        raise UsageError(
            f"{theirs[0]} can't be set for the client {GO}: its application commits what it stored"
        )
    return GoClient(argument.client_version or kafka_go.DEFAULT)


def local(text: str | None) -> KafkaTarget:
    """A released Kafka server on this machine, as `kafka-local:4.3.1`; librdkafka, `+java:VERSION` or `+go:VERSION`
    works on it.

    Raises UsageError for what is not known.
    """
    return KafkaTarget.local(text)


def remote(text: str | None) -> KafkaTarget:
    """A Kafka cluster that runs already, by an address of one of its brokers.

    Raises UsageError for what is no address.
    """
    return KafkaTarget.remote(text)
