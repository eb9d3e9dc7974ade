"""`processes:TARGET` and `containers:TARGET`: a target's brokers, with our consumers as parties that can be broken.

TARGET is one that opens a system of its own for clients of ours (`reference+tcp`, `rocketmq-local:5.4.0`): it lends the
system, its configuration, its profile and the names of the parties. Each consumer is a process, or a container;
producers are coroutines here, since nobody breaks them. Where a plan breaks links, proxies stand before the brokers.
A system is opened for each run, or kept for all runs of a search (`chaos.kept`).
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import Any, Protocol

import psutil

from chaos.frames.proxy import Story
from chaos.kept import KeptSystems
from chaos.links import OF_PROXIES, Links, Proxies, seen, wanted
from chaos.parties import Party, ProcessParty
from conformance.answers import NotTold, Quiet
from conformance.live import Live
from conformance.parts import wall_clock
from conformance.records import BEFALLS, BY_WIRE_CLIENTS
from conformance.targets.base import Run, Target, find
from conformance.targets.systems import System
from conformance.waiting import now_s
from conformance.wire.brokers import Brokers
from conformance.wire.session import patience_ms
from reference_impl import records
from reference_impl.core.io import SendMessage
from reference_impl.shell.node import ClientNode
from reference_impl.shell.planned import client_node
from reference_impl.shell.stalls import Stalls
from reference_impl.sim.cluster import Cores
from specs.errors import TargetMisbehaved, UsageError
from specs.faults import clock_step, crash, pause, perform, slow_cpu
from specs.history.row import Row
from specs.history.runinfo import declared
from specs.plan.ability import Ability
from specs.plan.config import Config
from specs.plan.messages import PlannedMessage
from specs.plan.plan import Action, Plan
from specs.plan.step import Step
from specs.verdicts.verdict import OURS
from specs.vocabulary import Kind, Queue

PROCESSES, CONTAINERS = "processes", "containers"
MakeParty = Callable[[str, list[str], Path], Party]
READY_S = 30.0
LOOK_S = 0.05
ASK_S = 0.5
"""How often brokers are asked whether everything is consumed."""
_OF_CLIENTS = frozenset({Ability.READ, Ability.GIVE_UP, Ability.CRASH_CLIENT, Ability.PAUSE_CLIENT})
_OF_SYSTEMS = frozenset(
    {
        Ability.CRASH_BROKER,
        Ability.CRASH_NAME_SERVER,
        Ability.CUT_POWER,
        Ability.FILL_DISK,
        Ability.PAUSE_BROKER,
        Ability.SLOW_DISK,
        Ability.STARVE_BROKER,
        Ability.STEP_BROKER_CLOCK,
        Ability.UPGRADE_BROKER,
    }
)
_WRITTEN_HERE = frozenset({Kind.CRASH, Kind.PAUSE, Kind.CLOCK_STEP, Kind.READ})
"""What the harness writes down, which orders it."""


class Lender(Protocol):
    """A target that opens a system for clients of ours. cores: the classes of these."""

    name: str
    parties: Mapping[str, str]
    profile: str
    config: Config
    abilities: frozenset[Ability]
    hindered: Mapping[Ability, str]
    lease_known: bool
    kills_broker: bool
    cores: Cores

    def open_system(self, config: Config) -> AbstractContextManager[System]:
        """Its brokers, with nobody at work."""

    def suited(self, plan: Plan) -> Plan:
        """The plan with what its configuration says whatever the plan does."""

    def settings(self, plan: Plan) -> Config:
        """What its system was told, as far as that is known."""


def lends_its_system(target: Target) -> bool:
    """Does it open a system that our own clients work on?"""
    return Ability.WIRE in target.abilities and target.parties["client"].startswith(OURS)


class HostedClients(Target):
    """make_party: makes a consumer of its name, its arguments and the run's folder. kept: where its runs work."""

    takes_config = True
    reads_at_work = True
    records = declared(
        client=records.OF_CLIENTS | BEFALLS - _WRITTEN_HERE, wire=BY_WIRE_CLIENTS - _WRITTEN_HERE
    )

    def __init__(
        self, kind: str, lender: Lender, make_party: MakeParty, kept: KeptSystems | None = None
    ) -> None:
        self.name = f"{kind}:{lender.name}"
        self.parties = lender.parties
        self.profile = lender.profile
        self.config = lender.config
        self.abilities = _OF_CLIENTS | lender.abilities & _OF_SYSTEMS
        if (
            lender.lease_known and not lender.kills_broker
        ):  # neither a stranger's cluster nor a served one
            self.abilities |= OF_PROXIES
        self.hindered = lender.hindered
        if kind == PROCESSES:
            self.abilities |= {Ability.STARVE_CLIENT}
        if kind == PROCESSES and (why := wall_clock.why_not()) is not None:
            self.hindered = {**self.hindered, Ability.STEP_CLOCK: why}
        elif kind == PROCESSES:
            self.abilities |= {Ability.STEP_CLOCK}
        self._lender = lender
        self._make_party = make_party
        self._kept = kept
        self._turn = ExitStack()
        self._brokers: Brokers | None = None
        self._proxies: Proxies | None = None
        self._story = Story()
        self._one_at_a_time = threading.Lock()
        self._parties: dict[str, Party] = {}
        self._nodes: dict[str, ClientNode] = {}
        self._stalls: asyncio.Task[None] | None = None

    def suited(self, plan: Plan) -> Plan:
        return self._lender.suited(plan)

    def settings(self, plan: Plan) -> Config:
        """The system is the lender's, and so is what is known of it: nothing of somebody's brokers is guessed."""
        return self._lender.settings(plan)

    async def prepare(self, run: Run) -> None:
        self._run = run
        self._live = Live(run.folder)
        self._starts: dict[str, int] = {}
        self._began_s = self._asks_s = now_s()
        self._story = Story()
        (run.folder / "plan.json").write_text(json.dumps(run.plan.to_json()), encoding="utf-8")
        await asyncio.to_thread(self._open, run)
        self._stalls = asyncio.create_task(Stalls(run.folder, lambda: self._nodes).watch())

    def _open(self, run: Run) -> None:
        if self._kept is None:
            self._brokers = Brokers(run, self._lender.open_system(run.plan.config))
        else:
            system = self._turn.enter_context(self._kept.for_run(run.plan))
            self._brokers = Brokers(run, nullcontext(system), lent=True)
        if which := wanted(run.plan):
            log, seed = run.folder / "toxiproxy.log", run.plan.seed
            self._proxies = Proxies(self._brokers.system, log, which, seed)
            self._story = self._proxies.story

    def beside(self, kept: KeptSystems) -> HostedClients:
        """Another one like it, whose runs go on beside those of others on the same systems."""
        kind, _, _ = self.name.partition(":")
        return HostedClients(kind, self._lender, self._make_party, kept)

    def keeping(self) -> KeptSystems:
        """Systems like those that it opens for its runs."""
        return KeptSystems(self._lender.open_system)

    def _via(self, client: str) -> Mapping[str, str]:
        return {} if self._proxies is None else self._proxies.via(client)

    @property
    def brokers(self) -> Brokers:
        """Those of the run."""
        assert self._brokers is not None, "a target is prepared first"
        return self._brokers

    # ------------------------------------------------------------ clients

    async def start(self, party: str) -> None:
        if party in self.brokers.system.brokers:
            await asyncio.to_thread(self.brokers.start, party)
        elif self._run.client(party).kind == "consumer":
            await self._start_consumer(party)
        else:
            journal = self._run.journal(party)
            self._nodes[party] = node = client_node(
                self._run.plan,
                party,
                self.brokers.system.namesrv,
                journal,
                self._began_s,
                producer=self._lender.cores.producer,
                via=self._via(party),
            )
            node.start()

    async def _start_consumer(self, name: str) -> None:
        if name not in self._parties:
            self._parties[name] = self._made(name)
        party = self._parties[name]
        self._starts[name] = self._starts.get(name, 0) + 1
        await asyncio.to_thread(party.start)
        until_s = now_s() + READY_S
        while self._live.joins_of(name) < self._starts[name]:
            if now_s() >= until_s:
                raise TargetMisbehaved(f"consumer {name} did not join within {READY_S:g} s")
            party.check()
            await asyncio.sleep(LOOK_S)
            self._live.look()

    def _made(self, name: str) -> Party:
        folder = self._run.folder
        arguments = ["--plan", str(folder / "plan.json"), "--client", name]
        arguments += ["--namesrv", self.brokers.system.namesrv]
        arguments += ["--began-s", f"{self._began_s:.6f}"]
        for broker, proxy in self._via(name).items():
            arguments += ["--via", f"{broker}={proxy}"]
        consumer = self._lender.cores.consumer
        if consumer is not None:
            arguments += ["--consumer", f"{consumer.__module__}:{consumer.__qualname__}"]
        party = self._make_party(name, arguments, folder)
        if name in self._run.plan.befallen(clock_step.VERB):
            party.own_clock(folder / "clocks")
        return party

    async def stop(self, party: str) -> None:
        node = self._nodes.pop(party, None)
        if node is not None:
            await node.shutdown()
        elif party in self._parties:
            await asyncio.to_thread(self._parties[party].stop)

    def check(self) -> None:
        for party in self._parties.values():
            party.check()
        if self._proxies is not None:
            self._proxies.check()

    # ------------------------------------------------------------ actions

    async def act(self, action: Action) -> None:
        args = action.args
        party = self._parties.get(args.get("client") or args.get("node", ""))
        match action.do:
            case "send" if not args.get("batch"):
                await self._send(args)
            case crash.VERB if args.get("silent"):
                raise UsageError(
                    "a process can't die here without its connections being seen to close"
                )
            case crash.VERB if party is not None:
                await asyncio.to_thread(party.kill)
            case pause.VERB if party is not None:
                await asyncio.to_thread(party.pause)
            case slow_cpu.VERB if party is not None:
                await asyncio.to_thread(party.starve, args["percent"])
            case pause.HEALED_BY if party is not None:
                await asyncio.to_thread(party.resume)
            case clock_step.VERB if party is not None:
                party.step_clock(args["ms"])
            case _:
                await asyncio.to_thread(self._break, action)

    async def _send(self, args: Mapping[str, Any]) -> None:
        for message in self._run.messages.of(args):
            await self._nodes[args["client"]].send(_as_sent(message))

    def _break(self, action: Action) -> None:
        """Do to a broker or a link what the action says."""
        if self.brokers.act(action):
            return
        if self._proxies is None:
            raise UsageError(f"the target {self.name} can't do {action.do!r}")
        self._check_nobody_bypasses(self._proxies)
        links = Links(self._proxies.by_link, self._proxies.frames)
        with self._one_at_a_time:  # steps that end at the same moment mend the same link
            done = perform(links, action.do, action.args)
        if not done:
            raise UsageError(f"the target {self.name} can't do {action.do!r}")

    def _check_nobody_bypasses(self, proxies: Proxies) -> None:
        """TargetMisbehaved when a consumer's process holds a connection to a broker past its own proxy."""
        for party in self._parties.values():
            past = {
                (host, int(port))
                for host, _, port in (
                    address.rpartition(":") for address in proxies.barred(party.name)
                )
            }
            for connection in _connections(party.pid):
                if connection.raddr and (connection.raddr.ip, connection.raddr.port) in past:
                    raise TargetMisbehaved(
                        f"consumer {party.name} speaks to a broker past its proxy"
                    )

    # ------------------------------------------------------------ the end

    async def settle(self, run: Run) -> bool:
        """Everything was consumed, or nothing was for longer than anything waits in a healthy system.

        What a broker has lost nobody consumes: the brokers are asked besides whether every queue is consumed to its
        end.
        """
        await asyncio.to_thread(self.brokers.heal)
        config = run.plan.config
        patience_s = patience_ms(config) / 1000
        until_s = now_s() + run.plan.settle_ms / 1000
        done, quiet = -1, Quiet()
        while now_s() < until_s:
            self._live.look()
            stored = await self._all_is_stored()
            if self._live.is_caught_up or stored is True:
                # An acknowledged dead letter may be seen as late as its bound says.
                await asyncio.sleep(config.dead_letter_bound_ms * 2 / 1000)
                return True
            is_quiet = len(self._live.done) == done and not isinstance(stored, NotTold)
            if quiet.look(is_quiet=is_quiet) >= patience_s:
                return True
            done = len(self._live.done)
            self.check()
            await asyncio.sleep(LOOK_S)
        return False

    async def _all_is_stored(self) -> bool | NotTold:
        if self._live.is_sending or now_s() < self._asks_s:
            return False
        self._asks_s = now_s() + ASK_S
        return await asyncio.to_thread(self.brokers.all_is_stored)

    def saw(self, step: Step, fault: Row) -> str | None:
        return seen(self._story, step, fault.started_us)

    def queues(self, run: Run) -> Sequence[tuple[Queue, str | None]]:
        return self.brokers.queues()

    async def read(self, queue: Queue) -> Sequence[Mapping[str, Any]]:
        return await asyncio.to_thread(self.brokers.read, queue)

    async def close(self) -> None:
        for node in self._nodes.values():
            await node.kill()
        for party in self._parties.values():
            await asyncio.to_thread(party.discard)
        if self._stalls is not None:
            self._stalls.cancel()
            await asyncio.wait([self._stalls])
        self._nodes, self._parties, self._stalls = {}, {}, None
        await asyncio.to_thread(self._leave)

    def _leave(self) -> None:
        """Who has the system next finds its brokers alive, as far as that is still up to us."""
        with self._turn.pop_all() as leaving:
            if self._brokers is not None:
                leaving.callback(self._brokers.close)
                if self._kept is not None:
                    leaving.callback(self._brokers.heal)
            if self._proxies is not None:
                leaving.callback(self._proxies.close)
            self._brokers = self._proxies = None


def processes(argument: str | None) -> HostedClients:
    """Our consumers as processes, on the brokers of another target: `processes:reference+tcp`."""
    return hosted(_lender(PROCESSES, argument), in_containers=False)


def containers(argument: str | None) -> HostedClients:
    """Our consumers as containers, on the brokers of another target: `containers:reference+tcp`."""
    return hosted(_lender(CONTAINERS, argument), in_containers=True)


def hosted(lender: Any, *, in_containers: bool) -> HostedClients:
    """The lender's brokers with our consumers. Raises Unavailable where no Docker engine answers."""
    if not in_containers:
        return HostedClients(PROCESSES, lender, ProcessParty)
    from chaos.containers import Engine

    return HostedClients(CONTAINERS, lender, Engine())


def _lender(kind: str, argument: str | None) -> Any:
    if not argument:
        raise UsageError(
            f"the target {kind} needs the one whose brokers it takes, as in {kind}:reference+tcp"
        )
    found = find(argument)
    if not lends_its_system(found):
        raise UsageError(f"the target {argument} has no brokers that clients of ours could work on")
    return found


def _connections(pid: int | None) -> Sequence[Any]:
    """Those of a process; none of one that another step has just killed."""
    try:
        return [] if pid is None else psutil.Process(pid).net_connections("tcp")
    except psutil.NoSuchProcess:
        return []


def _as_sent(message: PlannedMessage) -> SendMessage:
    return SendMessage(
        message.message_id,
        message.topic,
        message.body,
        message.sharding_key,
        message.key_seq,
        message.tags,
        message.message_id,
        message.delay_level,
    )
