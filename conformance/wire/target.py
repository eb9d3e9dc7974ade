"""A target whose clients are our own, on sockets: the reference's producers and consumers, on any system.

The system is one that speaks RocketMQ's protocol (`conformance.targets.systems`). The clients live in the process of
the run, with a journal for each of their lives. The queues are read while they are still at work, and then they all
vanish.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from conformance.answers import NotTold, Quiet, Told
from conformance.parts import own_disk
from conformance.parts.processes import kill_all
from conformance.records import BY_WIRE_CLIENTS
from conformance.targets.base import Asked, Run, Searched, Target
from conformance.targets.systems import System
from conformance.waiting import now_s
from conformance.wire.brokers import Brokers
from conformance.wire.nodes import CORRECT, PROBES, SENDS, ClientNodes
from conformance.wire.session import patience_ms
from reference_impl import records
from reference_impl.shell.stalls import Stalls
from reference_impl.sim.cluster import Cores
from reference_impl.sim.simulate import with_config
from specs.errors import UsageError
from specs.faults import perform
from specs.history.runinfo import declared
from specs.plan.ability import Ability
from specs.plan.config import IN_MEMORY, Config, without_the_brokers
from specs.plan.plan import Action, Plan
from specs.plan.rig import NAME_SERVER, PartialRig
from specs.profiles import Profile
from specs.verdicts.verdict import OURS
from specs.vocabulary import Kind, Queue

OF_OUR_CLIENTS = frozenset(
    {Ability.WIRE, Ability.READ, Ability.PROGRESS, Ability.GIVE_UP, Ability.CRASH_CLIENT}
)
"""What can be done to our clients on any system, or asked of it."""
LOOK_S = 0.25
Opens = Callable[[Config], AbstractContextManager[System]]


@dataclass(eq=False, kw_only=True)
class WireTarget(Target):
    """config: with the lease times that the target's brokers really have.

    opens: takes the configuration. of_system: what can be done to the brokers; if_able: what besides where this machine
    can, each with who says why it can't. kills_broker: a search kills one while
    the clients are at work, and starts it again. rounds: how many plans of `conformance.wire.work` it does, each on a
    system of its own. cores: the classes of the clients, where they are not the correct ones. plan_config: what every
    plan's configuration has to say. sought: the clause or wire rule whose first breach ends the search. told_us: of
    somebody's brokers, the settings that are known. syncs: of brokers whose power can be cut, how they sync what they
    acknowledge (`flush`) where a plan does not say it.
    """

    any_way = True

    name: str
    parties: Mapping[str, str]
    profile: str
    config: Config
    opens: Opens
    of_system: frozenset[Ability] = frozenset()
    if_able: Mapping[Ability, Callable[[], str | None]] = field(default_factory=dict)
    lease_known: bool = True
    kills_broker: bool = False
    remembers: bool = False
    rounds: int = 0
    cores: Cores = CORRECT
    plan_config: Mapping[str, Any] = field(default_factory=dict)
    sought: str = ""
    told_us: frozenset[str] = frozenset()
    syncs: str = ""
    hindered: Mapping[Ability, str] = field(default_factory=dict)
    reads_at_work = True
    records = declared(
        client=records.OF_CLIENTS, wire=(BY_WIRE_CLIENTS - {Kind.READ}) | records.OF_PROBERS
    )

    def __post_init__(self) -> None:
        own = () if self.remembers else (Ability.OWN_SYSTEM,)
        self.abilities = OF_OUR_CLIENTS | self.of_system | {*own}
        looks = dict(self.if_able)
        if self.syncs:
            looks[Ability.CUT_POWER] = own_disk.why_not
        found = {ability: why_not() for ability, why_not in looks.items()}
        self.abilities |= {ability for ability, why in found.items() if why is None}
        hindered = {ability: why for ability, why in found.items() if why is not None}
        self.hindered = {**self.hindered, **hindered}
        self._brokers: Brokers | None = None
        self._nodes: ClientNodes | None = None
        self._stalls: asyncio.Task[None] | None = None

    @property
    def is_ours(self) -> bool:
        """Is the broker our own code, so that it answers in the dialect that we ask for?"""
        return self.parties["broker"].startswith(OURS)

    def suited(self, plan: Plan) -> Plan:
        plan = with_config(plan, self.plan_config)
        cuts = Ability.CUT_POWER in plan.asks_of_brokers()
        if self.syncs and plan.config.flush == IN_MEMORY and cuts:
            return with_config(plan, {"flush": self.syncs})
        return plan

    def settings(self, plan: Plan) -> Config:
        """Where the system is somebody's, what its brokers were told is not known, whatever plans take for it."""
        if self.lease_known:
            return plan.config
        return without_the_brokers(plan.config, self.parties["broker"], known=self.told_us)

    def open_system(self, config: Config) -> AbstractContextManager[System]:
        return self.opens(config)

    def on(self, system: System) -> WireTarget:
        """The same target on a system that is open already, and stays so."""
        return replace(self, opens=lambda _config: nullcontext(system))

    def search(self, profile: Profile, asked: Asked) -> Searched:
        """Ask its broker over the wire, and let our clients work on it."""
        from conformance.wire.runner import EXAMPLES, FLOOR, conform_wire

        verdict, _history = conform_wire(
            self,
            profile,
            seed=asked.seed,
            examples=asked.number(EXAMPLES),
            out=asked.out,
            floor=asked.at_stake(FLOOR),
            part=asked.part,
            say=asked.say,
            stop=asked.stop,
        )
        return Searched(verdict)

    # ------------------------------------------------------------ a run

    @property
    def brokers(self) -> Brokers:
        """Of the run that it is prepared for. Raises UsageError before."""
        if self._brokers is None:
            raise UsageError(f"the target {self.name} was not prepared")
        return self._brokers

    @property
    def nodes(self) -> ClientNodes:
        """The clients of the run that it is prepared for. Raises UsageError before."""
        if self._nodes is None:
            raise UsageError(f"the target {self.name} was not prepared")
        return self._nodes

    async def prepare(self, run: Run) -> None:
        """In a thread, so that a Ctrl-C need not wait until a server is up; what is interrupted leaves nothing open."""
        self._brokers = await _opened(run, self.opens(run.plan.config))
        self._nodes = nodes = ClientNodes(run, self._brokers.system.namesrv, self.cores)
        self._stalls = asyncio.create_task(Stalls(run.folder, lambda: nodes).watch())

    async def start(self, party: str) -> None:
        if party in self.brokers.names:
            await asyncio.to_thread(self.brokers.start, party)
        else:
            self.nodes.start(party)

    async def act(self, action: Action) -> None:
        """Sends are begun and go on by themselves; a fault is done in a thread: a broker takes time to start."""
        match action.do:
            case do if do in SENDS:
                self.nodes.send(action.args)
            case do if do in PROBES:
                broker = action.args["broker"]
                name, address = self.brokers.name(broker), self.brokers.address(broker)
                self.nodes.probe(do, action.args, name, address)
            case do:
                rig = _Rig(self, asyncio.get_running_loop())
                if not await asyncio.to_thread(perform, rig, do, action.args):
                    raise UsageError(f"the target {self.name} can't do {do!r}")

    async def stop(self, party: str) -> None:
        await self.nodes.stop(party)

    async def settle(self, run: Run) -> bool:
        """Wait until nothing is left to happen to the plan's messages.

        At rest is who has consumed everything and said so, and who should have long since: after the time that a
        healthy system may take for everything, one after the other (docs/history.md). Where groups say nothing, or say
        it as their listeners please, nothing is concluded.
        """
        await asyncio.to_thread(self.brokers.heal)
        await self.nodes.sent()
        plan, config = run.plan, run.plan.config
        rests = config.message_model == "clustering" and not any(r.manual for r in plan.listener)
        if rests:
            patience_s = patience_ms(config) / 1000
            rests = await self._is_stored(patience_s, now_s() + plan.settle_ms / 1000)
        else:
            await asyncio.sleep(config.suspend_ms * config.batch / 1000)
        await asyncio.sleep(config.dead_letter_bound_ms * 2 / 1000)  # what waits for a level too
        self.nodes.check()
        return rests

    async def _is_stored(self, patience_s: float, until_s: float) -> bool:
        """Wait until everything is stored, or should long since be. False where `until_s` came first."""
        quiet = Quiet(patience_s)
        while now_s() < until_s:
            done = await asyncio.to_thread(self.brokers.all_is_stored)
            is_told = not isinstance(done, NotTold)
            if done is True or quiet.look(is_quiet=is_told) >= patience_s:
                return True
            await asyncio.sleep(LOOK_S)
        return False

    def queues(self, run: Run) -> Sequence[tuple[Queue, str | None]]:
        return self.brokers.queues()

    async def read(self, queue: Queue) -> Sequence[Mapping[str, Any]]:
        return await asyncio.to_thread(self.brokers.read, queue)

    async def progress(self, group: str, queue: Queue) -> Told[int]:
        return await asyncio.to_thread(self.brokers.progress, group, queue)

    async def close(self) -> None:
        if self._nodes is not None:
            await self._nodes.vanish()
        if self._stalls is not None:
            self._stalls.cancel()
            await asyncio.wait([self._stalls])
        if self._brokers is not None:
            self._brokers.close()
        self._nodes = self._stalls = self._brokers = None


async def _opened(run: Run, system: AbstractContextManager[System]) -> Brokers:
    """Enter the system. Cancelled, its servers are killed, and what was open by then is left again."""
    opening = asyncio.ensure_future(asyncio.to_thread(Brokers, run, system))
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        kill_all()
        await asyncio.wait([opening])
        if opening.exception() is None:
            opening.result().close()
        raise


class _Rig(PartialRig):
    """What can be done to our own clients, which live in the run's loop, and to the system's brokers."""

    def __init__(self, target: WireTarget, loop: asyncio.AbstractEventLoop) -> None:
        self._target = target
        self._loop = loop
        system = target.brokers.system
        self.abilities = {Ability.CRASH_CLIENT, *system.abilities, *system.if_able}
        self.brokers = target.brokers.names

    def kill(self, node: str, *, silent: bool = False) -> None:
        if silent:
            raise UsageError(
                "a client on sockets can't die without its connections being seen to close"
            )
        if node == NAME_SERVER:
            self._target.brokers.crash_name_server()
        elif node in self.brokers:
            self._target.brokers.crash(node)
        else:
            self._in_the_loop(self._target.nodes.kill(node))

    def revive(self, node: str) -> None:
        if node == NAME_SERVER:
            self._target.brokers.restart_name_server()
            return
        self._in_the_loop(self._target.start(node))

    def cut_power(self, broker: str, *, synced: bool = False) -> None:
        self._target.brokers.cut_power(broker, synced=synced)

    def exchange(self, broker: str, *, newer: bool) -> None:
        self._target.brokers.exchange(broker, newer=newer)

    def pause(self, node: str) -> None:
        self._target.brokers.pause(node)

    def starve(self, node: str, percent: int) -> None:
        self._target.brokers.pause(node, percent=percent)

    def resume(self, node: str) -> None:
        self._target.brokers.resume(node)

    def fill_disk(self, broker: str) -> None:
        self._target.brokers.fill(broker, full=True)

    def make_room(self, broker: str) -> None:
        self._target.brokers.fill(broker, full=False)

    def slow_disk(self, broker: str, ms: int) -> None:
        self._target.brokers.slow(broker, ms)

    def quicken_disk(self, broker: str) -> None:
        self._target.brokers.slow(broker, 0)

    def step_clock(self, node: str, ms: int) -> None:
        self._target.brokers.step_clock(node, ms)

    def _in_the_loop(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()
