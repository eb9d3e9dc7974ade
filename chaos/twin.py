"""The simulated twin of a chaos run: the same plan, its steps done in virtual time, on the reference or on a mutant.

`conformance.steps` does them, as in a real run; only the event loop's time is the cluster's. Whatever is done becomes
an action with its time, so that a twin leaves a plan without steps, which repeats the run to the byte: `inorder
replay`, `shrink` and `explain` know it as any other simulated run. A fault of everybody's links befalls each client's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from chaos.virtual_time import VirtualTime
from conformance.live import Happenings
from conformance.machines.abstraction import LaneState, lane_states
from conformance.run import SHORT
from conformance.steps import FaultDone, Steps
from reference_impl.mutants import Mutant
from reference_impl.sim.cluster import Cluster
from reference_impl.sim.network import LATENCY_MS
from reference_impl.sim.simulate import cores_of, run_name, runinfo_of
from specs.history.evidence import names_of
from specs.history.journal import MemoryRecorder
from specs.history.row import Row, make_row
from specs.history.runinfo import RunInfo
from specs.plan.fault import Subject
from specs.plan.plan import Action, Plan
from specs.plan.step import EVERYBODY, Step
from specs.vocabulary import Kind, Outcome

LOOK_MS = 50
"""How often the states of the lanes are looked at."""


class _Telling(MemoryRecorder):
    """Records a run, and tells what happens to who waits for it."""

    def __init__(self, run: str, now_us: Callable[[], int], live: Happenings) -> None:
        super().__init__(run, now_us)
        self._live = live

    def begin(
        self,
        op: Hashable,
        kind: Kind,
        fields: Mapping[str, Any],
        rows: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        super().begin(op, kind, fields, rows)
        self._live.begins(op, kind, self._now_us(), fields, rows)

    def end(
        self,
        op: Hashable,
        outcome: Outcome,
        fields: Mapping[str, Any] | None = None,
        rows: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        super().end(op, outcome, fields, rows)
        self._live.ends(op, outcome, fields or {}, rows)

    def note(self, kind: Kind, outcome: Outcome, fields: Mapping[str, Any]) -> None:
        super().note(kind, outcome, fields)
        self._live.notes(kind, outcome, self._now_us(), fields)


class WatchedCluster(Cluster):
    """A simulated cluster that says what happens in it."""

    def __init__(self, plan: Plan, mutant: Mutant | None) -> None:
        self.live = Happenings()
        super().__init__(plan, cores_of(mutant), run_name(mutant, plan))

    def _world(self, run: str, latency_ms: int = LATENCY_MS) -> None:
        super()._world(run, latency_ms)
        self._recorder = _Telling(run, self._timeline.now_us, self.live)


class _FaultRows:
    """Whom a run's steps tell their faults. The cluster writes down its own rows of each; here is when a step's was."""

    def __init__(self, now_us: Callable[[], int]) -> None:
        self._now_us = now_us
        self._begun: dict[Hashable, int] = {}
        self.lasted: list[tuple[int, int]] = []

    def begin(self, op: Hashable, kind: Kind, fields: Mapping[str, Any]) -> None:
        self._begun[op] = len(self.lasted)
        self.lasted.append((self._now_us(), self._now_us()))

    def end(self, op: Hashable, outcome: Outcome) -> None:
        number = self._begun.pop(op)
        self.lasted[number] = (self.lasted[number][0], self._now_us())

    def note(self, kind: Kind, outcome: Outcome, fields: Mapping[str, Any]) -> None:
        self.lasted.append((self._now_us(), self._now_us()))


@dataclass(frozen=True, slots=True)
class FaultShown:
    """A fault of a run: its step's name, and what shows in the history that it had an effect, if anything.

    from_us, to_us: by the cluster's clock.
    """

    name: str
    shown: str | None
    from_us: int
    to_us: int


@dataclass(frozen=True, slots=True)
class Twin:
    """A run that was made. plan: what was done, without steps. states: of lanes, where somebody looked."""

    plan: Plan
    info: RunInfo
    rows: list[Row]
    faults: tuple[FaultShown, ...]
    states: frozenset[LaneState]


def play(plan: Plan, mutant: Mutant | None = None, *, look: bool = False) -> Twin:
    """Do a plan with steps on the simulated cluster. look: whether the states of lanes are wanted."""
    if mutant is not None:
        plan = replace(plan, config=replace(plan.config, **mutant.config))
    playing = _Playing(plan, mutant, look=look)
    with asyncio.Runner(loop_factory=playing.loop) as runner:
        runner.run(playing.act())
    return playing.rest(mutant)


class _Playing:
    """A run while it is made."""

    def __init__(self, plan: Plan, mutant: Mutant | None, *, look: bool) -> None:
        self._plan = plan
        self._cluster = WatchedCluster(plan, mutant)
        self._done: list[Action] = []
        self._look = look
        self._states: set[LaneState] = set()
        self._fault_rows = _FaultRows(lambda: self._cluster.now_ms * 1000)
        self._steps = Steps(
            plan, self._cluster.live, self._do, lambda: None, harness=self._fault_rows
        )

    def loop(self) -> VirtualTime:
        return VirtualTime(lambda: self._cluster.now_ms, self._cluster.run_until)

    async def act(self) -> None:
        """Every action at its time, the steps beside them, and the sends again until the steps are over."""
        plan = self._plan
        looking = asyncio.create_task(self._looks()) if self._look else None
        first = [action for action in plan.actions if action.at_ms == 0]
        for action in first:
            self._perform(action)
        self._steps.begin()
        for action in plan.actions[len(first) :]:
            await self._until(action.at_ms)
            self._perform(action)
        await self._until(plan.until_ms)
        await self._send_until_steps_are_over()
        await self._steps.cancel()
        if looking is not None:
            looking.cancel()

    async def _send_until_steps_are_over(self) -> None:
        sends = [action for action in self._plan.actions if action.do == "send"]
        turn_ms = self._plan.until_ms - min((send.at_ms for send in sends), default=0)
        turn = 1
        while sends and not self._steps.are_over:
            for action in sends:
                if self._steps.are_over:
                    break
                await self._until(action.at_ms + turn * turn_ms)
                self._perform(action)
            turn += 1
        await self._steps.end()

    async def _until(self, at_ms: int) -> None:
        await asyncio.sleep(max(0, at_ms - self._cluster.now_ms) / 1000)

    async def _looks(self) -> None:
        while True:
            self._states.update(lane_states(self._cluster))
            await asyncio.sleep(LOOK_MS / 1000)

    async def _do(self, action: Action) -> None:
        for each in for_each_client(self._plan, action):
            self._perform(each)

    def _perform(self, action: Action) -> None:
        self._done.append(replace(action, at_ms=self._cluster.now_ms))
        self._cluster.perform(action.do, action.args)

    def rest(self, mutant: Mutant | None) -> Twin:
        """Heal, let it come to rest, and read everything."""
        cluster = self._cluster
        plan = replace(self._plan, actions=tuple(self._done), steps=(), until_ms=cluster.now_ms)
        cluster.settle(plan.settle_ms)
        if plan.drain:
            cluster.drain()
        rows = cluster.rows()
        info = runinfo_of(plan, mutant)
        if self._steps.short:
            info = replace(info, environment={SHORT: "; ".join(self._steps.short)})
        shown = tuple(_shown(rows, self._steps.done, self._fault_rows.lasted))
        return Twin(plan, info, rows, shown, frozenset(self._states))


def for_each_client(plan: Plan, action: Action) -> Iterator[Action]:
    """The action itself; of everybody's link to a broker one for each client's."""
    if EVERYBODY not in action.args.values():
        yield action
        return
    for client in plan.clients:
        args = {
            name: client.id if value == EVERYBODY else value for name, value in action.args.items()
        }
        yield replace(action, args=args)


def _shown(
    rows: Sequence[Row], done: Sequence[FaultDone | None], lasted: Sequence[tuple[int, int]]
) -> Iterator[FaultShown]:
    """What came of each fault, as `conformance.steps.attested` finds it in a real run's history."""
    faults = [each for each in done if each is not None]
    for fault, (began_us, ended_us) in zip(faults, lasted, strict=True):
        step = fault.step
        row = make_row(kind=Kind.FAULT, started_us=began_us, ended_us=ended_us, **step.columns)
        shown = step.attest(rows, row) or _told_by_the_network(rows, step, row)
        yield FaultShown(step.detail, None if fault.short else shown, began_us, ended_us)


def _told_by_the_network(rows: Sequence[Row], step: Step, told: Row) -> str | None:
    """A frame met the fault, whatever it was: of some requests, as of a group's members, a history has no rows."""
    fault = step.fault
    if fault is None or fault.subject is not Subject.LINK:
        return None
    met = [
        row
        for row in rows
        if row.kind is Kind.FAULT
        and row.outcome is Outcome.OK
        and (row.detail or "").partition(" ")[0] == step.do
        and told.started_us <= row.started_us <= (told.ended_us or told.started_us)
        and step.args[fault.nodes[-1]] in names_of(row)
    ]
    return f"{len(met)} links have met it" if met else None
