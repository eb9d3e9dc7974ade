"""`reference+java:V` and `rocketmq-local:V+java:V2`: Apache's Java client at work, on our broker and on Apache's; and
`+go:V`, Apache's Go client.

What a run is written down by: the drivers tell calls, sends and their share of the lanes; who makes the run writes what
it does itself; the drain reads everything back. Our own broker writes down besides what each client asks of it
(`conformance.drivers.watching`). Nobody sees what a client asks of any other: then the history says so (`records`),
and the clauses that rest on it are not recorded.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from conformance.answers import Told
from conformance.drivers.golang import start_go
from conformance.drivers.java import start_java
from conformance.drivers.plans import DRIVEN
from conformance.drivers.process import DriverProcess, Event
from conformance.drivers.recording import told_by
from conformance.drivers.target import DriverTarget
from conformance.drivers.targets import GO_MARK, MARK, MARKS
from conformance.drivers.watching import ANSWER_WAY_MS, WATCHED, Watch, complete
from conformance.parts import jars, rocketmq_go
from conformance.targets import upgrades
from conformance.targets.base import Run, find
from conformance.targets.systems import (
    ApacheOnThisMachine,
    ReferenceOnSockets,
    Remote,
    System,
    answers,
)
from conformance.wire.brokers import Brokers
from conformance.wire.runner import ours
from conformance.wire.target import WireTarget
from reference_impl.core.broker import Broker, BrokerConfig, BrokerStore
from reference_impl.shell.body import Core
from reference_impl.sim.simulate import with_config
from specs.errors import UsageError
from specs.history.row import Row
from specs.history.runinfo import declared
from specs.plan.ability import Ability
from specs.plan.config import Config, without_the_brokers
from specs.plan.plan import Action, ClientPlan, Plan
from specs.profiles import BESIDE
from specs.vocabulary import Kind, Level, Queue

REFERENCE, LOCAL = "reference", "rocketmq-local"
MIXED = "mixed"
"""The option that names the clients' other version: a group has members of both."""
CLIENT_IP = "127.0.0.1"
GO_PROFILE = "rocketmq-go-orderly"
_OF_DRIVERS = frozenset({Ability.READ, Ability.CRASH_CLIENT, Ability.PAUSE_CLIENT, Ability.GIVE_UP})
OpenSystem = Callable[[Config, Watch | None], AbstractContextManager[System]]


@dataclass(frozen=True, slots=True)
class Pair:
    """A broker and the clients at work on it.

    watched: the broker is ours and writes down what the clients ask; `open_system` takes the configuration and, then,
    the watch. config: what the plans are drawn from. abilities: what can be done to the brokers.
    plan_config: what every plan's configuration has to say.
    """

    name: str
    parties: Mapping[str, str]
    profile: str
    config: Config
    watched: bool
    open_system: OpenSystem
    abilities: frozenset[Ability]
    plan_config: Mapping[str, Any] = field(default_factory=dict)


class DrivenTarget(DriverTarget):
    """A system, and a client of Apache's of a version at work on it. mark: what stands before that version."""

    mark: ClassVar[str]

    def __init__(self, pair: Pair, version: str) -> None:
        super().__init__()
        self.pair, self.version = pair, version
        self.name, self.parties = pair.name, pair.parties
        self.profile, self.config = pair.profile, pair.config
        self.abilities = pair.abilities | _OF_DRIVERS
        if not pair.watched:  # there a question is told like any client's
            self.abilities |= {Ability.PROGRESS}
        self._kept = ExitStack()
        self._system: System | None = None
        self._brokers: Brokers | None = None
        self._waited = False

    @property
    def records(self) -> Mapping[str, tuple[str, ...]]:  # type: ignore[override]
        """Nobody ends a half message: a driver is never asked to. What is sent back it does not tell."""
        told = told_by(self.events) | {Kind.CHECK, Kind.END_TRANSACTION}
        return declared(client=told, **({"wire": WATCHED} if self.pair.watched else {}))

    def suited(self, plan: Plan) -> Plan:
        return with_config(super().suited(plan), self.pair.plan_config)

    async def prepare(self, run: Run) -> None:
        await super().prepare(run)
        self._waited = False
        self._brokers = await asyncio.to_thread(self._open, run)

    def settings(self, plan: Plan) -> Config:
        """What the clients can't be told is their own: first of all they report offsets after ten seconds."""
        config = replace(plan.config, persist_first_ms=Config().persist_first_ms)
        return config if self.lease_known else without_the_brokers(config, self.parties["broker"])

    def _open(self, run: Run) -> Brokers:
        """The brokers of a run. Watched ones are new in each, any others are kept until `release`."""
        pair, config = self.pair, run.plan.config
        if pair.watched:
            watch = Watch(run.journal("broker", level=Level.WIRE), self.names(run))
            return self.made_brokers(run, pair.open_system(config, watch))
        if self._system is None or not answers(self._system):  # a run may have left it dead
            self._system = self._kept.enter_context(pair.open_system(config, None))
        self._system.take_back()
        return self.made_brokers(run, nullcontext(self._system))

    def made_brokers(self, run: Run, system: AbstractContextManager[System]) -> Brokers:
        """The brokers of a run, with its topics made."""
        return Brokers(run, system)

    @property
    def brokers(self) -> Brokers:
        """Of the run that it is prepared for. Raises UsageError before."""
        if self._brokers is None:
            raise UsageError(f"the target {self.name} was not prepared")
        return self._brokers

    def open_system(self, config: Config) -> AbstractContextManager[System]:
        return self.pair.open_system(config, None)

    def names(self, run: Run) -> Mapping[str, str]:
        return {f"{CLIENT_IP}@{client.id}": client.id for client in run.plan.clients}

    @abstractmethod
    def start_client(
        self, name: str, config: Config, folder: Path, on_event: Callable[[Event], Any]
    ) -> DriverProcess:
        """A driver of the client, running and not yet greeted; its log goes below the folder."""

    def start_alone(self, name: str, folder: Path) -> DriverProcess:
        return self.start_client(name, self.config, folder, lambda _: None)

    def spawn(self, name: str, run: Run, on_event: Callable[[Event], Any]) -> DriverProcess:
        """Where the answers to its locks are told by the broker, a client's own lease is so much shorter."""
        config, way_ms = run.plan.config, ANSWER_WAY_MS if self.pair.watched else 0
        config = replace(config, client_lease_ms=config.client_lease_ms - way_ms)
        return self.start_client(name, config, run.folder, on_event)

    def told_at_start(self, client: ClientPlan, run: Run) -> Mapping[str, Any]:
        return {"namesrv": self.brokers.system.namesrv}

    async def start(self, party: str) -> None:
        if party in self.brokers.names:
            await asyncio.to_thread(self.brokers.start, party)
        else:
            await super().start(party)

    async def act(self, action: Action) -> None:
        if not await asyncio.to_thread(self.brokers.act, action):
            await super().act(action)

    def written(self, run: Run) -> int:
        """What the drivers tell: of a client that has nothing to do a watched broker hears all the same."""
        return sum(
            path.stat().st_size
            for client in run.plan.clients
            for path in (run.folder / "journal").glob(f"{client.id}*.jsonl")
        )

    def queues(self, run: Run) -> Sequence[tuple[Queue, str | None]]:
        return self.brokers.queues()

    async def let_pass(self) -> None:
        """Before the first queue is read there passes what the delay levels let a message wait."""
        if not self._waited:
            await asyncio.sleep(self.config.dead_letter_bound_ms * 2 / 1000)
            self._waited = True

    async def read(self, queue: Queue) -> Sequence[Mapping[str, Any]]:
        await self.let_pass()
        return await asyncio.to_thread(self.brokers.read, queue)

    async def progress(self, group: str, queue: Queue) -> Told[int]:
        return await asyncio.to_thread(self.brokers.progress, group, queue)

    async def settle(self, run: Run) -> bool:
        await asyncio.to_thread(self.brokers.heal)
        return await super().settle(run)

    async def is_awake(self) -> bool:
        """The brokers answer, too. Those in this process do as long as it does."""
        system = self.brokers.system
        if not self.pair.watched and not await asyncio.to_thread(answers, system):
            return False
        return await super().is_awake()

    async def close(self) -> None:
        try:
            await super().close()
        finally:
            brokers, self._brokers = self._brokers, None
            if brokers is not None:
                await asyncio.to_thread(brokers.close)

    def completed(self, rows: list[Row]) -> list[Row]:
        return complete(rows) if self.pair.watched else rows

    def release(self) -> None:
        self._system = None
        self._kept.close()


class JavaTarget(DrivenTarget):
    """With Apache's Java client. other: the version that half of its consumers are of, where its groups are mixed."""

    mark = MARK
    other: str | None = None

    async def prepare(self, run: Run) -> None:
        await super().prepare(run)
        self._said: dict[str, str] = {}

    def start_client(
        self, name: str, config: Config, folder: Path, on_event: Callable[[Event], Any]
    ) -> DriverProcess:
        return start_java(self.version_of(name), name, config, folder, on_event)

    def version_of(self, name: str) -> str:
        """Every second consumer begins as the other version; who comes again is of the one that it was not."""
        if self.other is None or self._run is None:
            return self.version
        consumers = [each.id for each in self._run.plan.clients if each.kind == "consumer"]
        lives = self._lives.get(name, 1) - 1
        turn = consumers.index(name) + lives if name in consumers else 0
        return self.other if turn % 2 else self.version

    def tells(self, party: str) -> str | None:
        """Its version, where there are two."""
        return None if self.other is None else self._said.get(party)

    def greeted(self, name: str, said: Mapping[str, Any]) -> None:
        if self.other is not None:
            self._said[name] = f"Apache Java client {said['client']}"


class GoTarget(DrivenTarget):
    """With Apache's Go client. What it has lost shows while it still works on the lane."""

    mark = GO_MARK
    reads_at_work = True
    beyond_the_limit = 1

    def start_client(
        self, name: str, config: Config, folder: Path, on_event: Callable[[Event], Any]
    ) -> DriverProcess:
        return start_go(self.version, name, config, folder, on_event)


Paired: TypeAlias = DrivenTarget | WireTarget


@dataclass(frozen=True, slots=True)
class ClientOf:
    """A client of Apache's, as a target names it. check: of its version; profile: of a version, as built."""

    called: str
    target: type[DrivenTarget]
    check: Callable[[str], None]
    profile: Callable[[str], str]


def profile_of(version: str) -> str:
    """The profile of a release, as built."""
    if version.startswith("4."):
        newer = tuple(int(part) for part in version.split(".")[:3]) >= (4, 9, 4)
        return "rocketmq-4.9-orderly" if newer else "rocketmq-4.0-orderly"
    return (
        "rocketmq-5.0-orderly" if version.startswith(("5.0.", "5.1.")) else "rocketmq-5.2-orderly"
    )


CLIENTS: Mapping[str, ClientOf] = {
    MARK: ClientOf("Java", JavaTarget, jars.check_client_version, profile_of),
    GO_MARK: ClientOf("Go", GoTarget, rocketmq_go.DRIVER.check_version, lambda _: GO_PROFILE),
}
"""By what stands before the version."""


def split(text: str) -> tuple[str, str | None, str]:
    """What stands before the client of a target's name, the mark of the client, and its version. None: no client."""
    for mark in MARKS:
        before, found, version = text.partition(mark)
        if found:
            return before, mark, version
    return text, None, ""


def reference(client: str | None) -> Paired:
    """Apache's Java client of a version on our own cluster, which records what the client asks for."""
    return _on_the_reference(client, MARK, "5.4.0")


def reference_go(client: str | None) -> Paired:
    """Apache's Go client of a version on our own cluster, which records what the client asks for."""
    return _on_the_reference(client, GO_MARK, rocketmq_go.DEFAULT)


def _on_the_reference(client: str | None, mark: str, example: str) -> Paired:
    name = f"{REFERENCE}{mark}".removesuffix(":")
    if not client:
        raise UsageError(f"the target {name} needs the client's version, as in {name}:{example}")
    return pair(None, client, mark)


def dialect_of(version: str | None) -> str:
    """Of a release, or (None) of ours."""
    return "4.9" if (version or "").startswith("4.") else "5.x"


def unsettable(version: str | None) -> Mapping[str, Any]:
    """What a release decides itself, whatever a plan says, by the setting's name. None: our own broker.

    RocketMQ 4 forgets a client that is silent after two minutes (`ConsumerManager.CHANNEL_EXPIRED_TIMEOUT`); 5 has
    `channelExpiredTimeout`. Its brokers write offsets ten seconds after their start, and each five from then on
    (docs/sources.md#offsets).
    """
    if not version:
        return {}
    own = {"broker_persist_first_ms": 10_000, "broker_persist_ms": 5_000}
    return own | ({"channel_expiry_ms": 120_000} if version.startswith("4.") else {})


def pair(
    broker: str | None,
    client: str | None,
    mark: str = MARK,
    *,
    newer: str | None = None,
    other: str | None = None,
) -> Paired:
    """A broker and a client: each Apache's of a version, or (None) our own. mark: which of Apache's clients.

    newer: what the broker may be upgraded to. other: of a mixed group, the clients' other version. Raises UsageError
    for unknown versions.
    """
    of = CLIENTS[mark]
    if broker is not None:
        jars.check_version(broker)
    for version in filter(None, (client, other)):
        of.check(version)
    system = REFERENCE if broker is None else f"{LOCAL}:{broker}"
    weaker = None if broker is None else upgrades.older(broker, newer)
    theirs = ours() if client is None else f"Apache {of.called} client {client}"
    theirs = theirs if other is None else f"{theirs} and {other}"
    of_broker = REFERENCE if weaker is None else profile_of(weaker)
    of_clients = [REFERENCE] if client is None else [of.profile(client)]
    of_clients += [] if other is None else [of.profile(other)]
    of_clients = list(dict.fromkeys(of_clients))
    profile = BESIDE.join([of_broker, *(of_clients if of_clients != [of_broker] else [])])
    name = _name(system, client, mark)
    for option, asked in ((MIXED, other), (upgrades.OPTION, newer)):
        name = name if asked is None else f"{name},{option}={asked}"
    parties = {
        "broker": ours() if broker is None else f"Apache RocketMQ {upgrades.named(broker, newer)}",
        "client": theirs,
        "producer": theirs,
    }
    config = replace(DRIVEN, dialect=dialect_of(weaker))
    opens: OpenSystem = _on_sockets if broker is None else partial(_on_this_machine, broker, newer)
    of_system = (ReferenceOnSockets if broker is None else ApacheOnThisMachine).abilities
    of_system |= upgrades.abilities(newer)
    if client is None:
        return WireTarget(
            name=name,
            parties=parties,
            profile=profile,
            config=config,
            opens=lambda config: opens(config, None),
            of_system=of_system,
            plan_config=unsettable(weaker),
        )
    found = Pair(
        name=name,
        parties=parties,
        profile=profile,
        config=config,
        watched=broker is None,
        open_system=opens,
        abilities=of_system | {Ability.OWN_SYSTEM},
        plan_config=unsettable(weaker),
    )
    target = of.target(found, client)
    if isinstance(target, JavaTarget):
        target.other = other
    if broker is not None:
        example = f"{LOCAL}:{broker}{mark}{client},{upgrades.OPTION}={jars.VERSIONS[-1]}"
        target.hindered = upgrades.hindered(newer, example)
    return target


def abroad(address: str, client: str, mark: str = MARK) -> DrivenTarget:
    """Apache's client of a version on a cluster that runs already. Its lease is taken to be the product's 60 s."""
    of = CLIENTS[mark]
    of.check(client)
    theirs, product = f"Apache {of.called} client {client}", Config()
    found = Pair(
        name=f"rocketmq:{address}{mark}{client}",
        parties={
            "broker": f"Apache RocketMQ at {address}",
            "client": theirs,
            "producer": theirs,
        },
        profile="rocketmq-5-orderly" if mark == MARK else f"rocketmq-5-orderly + {GO_PROFILE}",
        config=replace(
            DRIVEN,
            broker_lease_ms=product.broker_lease_ms,
            delay_levels=product.delay_levels,
        ),
        watched=False,
        open_system=lambda _config, _watch: Remote(address),
        abilities=Remote.abilities,
    )
    target = of.target(found, client)
    target.lease_known, target.remembers = False, True
    return target


def find_java(text: str) -> JavaTarget:
    """The target of that name, with Apache's Java client at work. Raises UsageError for any other."""
    found = find(text)
    if not isinstance(found, JavaTarget):
        raise UsageError(
            f"{text} names no Java client; write it as rocketmq-local:5.4.0{MARK}5.4.0"
        )
    return found


def _name(system: str, client: str | None, mark: str) -> str:
    """The target that a user names, as far as there is one: our own client's are those of the raw client too."""
    if client is not None:
        return f"{system}{mark}{client}"
    return "reference+tcp" if system == REFERENCE else system


def _on_this_machine(
    version: str, newer: str | None, config: Config, _watch: Watch | None
) -> ApacheOnThisMachine:
    return ApacheOnThisMachine(version, config, newer=newer)


def _on_sockets(config: Config, watch: Watch | None) -> ReferenceOnSockets:
    if watch is None:
        return ReferenceOnSockets(config)

    def make(config: BrokerConfig, store: BrokerStore) -> Core:
        return watch.core(config.name, Broker(config, store))

    return ReferenceOnSockets(config, make_broker=make)
