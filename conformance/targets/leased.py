"""`leased[:MUTANT]`: the simulated reference of messages that are leased one by one, or that with one known bug.
`leased:grouped` is that of a group with generations, and a mutant of it is named like any other.

Its clock is virtual, and its plans are its own (`reference_impl.sim.leased_plans`): members sleep past their leases,
die, acknowledge late, and some answers are lost.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from conformance.rounds import FLOOR, conform_rounds
from conformance.targets.base import Asked, ClockKind, Run, Searched, Target, known_names
from reference_impl.core.coordinator import Coordinator
from reference_impl.core.leased_queue import LeasedQueue
from reference_impl.core.sequenced_log import SequencedLog
from reference_impl.mutants import LEASED, all_mutants, load
from reference_impl.sim import grouped
from reference_impl.sim.grouped import GROUPED, GroupWorld, grouped_parties
from reference_impl.sim.grouped import RECORDED as OF_GROUPS
from reference_impl.sim.leased import (
    RECORDED,
    LeasedWorld,
    leased_name,
    leased_parties,
    settings,
)
from reference_impl.sim.leased_plans import CONFIG, drawn_plan
from specs.errors import UsageError
from specs.faults import crash, pause
from specs.history.row import Row
from specs.plan.ability import Ability
from specs.plan.config import Config
from specs.plan.plan import Action, Plan
from specs.profiles import Profile

ROUNDS = 12


class LeasedTarget(Target):
    """bug: the name of a mutant; none for the correct reference."""

    clock = ClockKind.VIRTUAL
    abilities = frozenset(
        {Ability.READ, Ability.CRASH_CLIENT, Ability.PAUSE_CLIENT, Ability.OWN_SYSTEM}
    )
    profile = LEASED
    config = CONFIG
    takes_config = True
    records = RECORDED

    def __init__(self, bug: str = "", queue_class: type[LeasedQueue] = LeasedQueue) -> None:
        self.name = leased_name(bug)
        self.parties = leased_parties(bug)
        self._queue_class = queue_class
        self._world: LeasedWorld | None = None
        self._rows: list[Row] = []

    @property
    def world(self) -> LeasedWorld:
        """Raises UsageError where none was prepared."""
        if self._world is None:
            raise UsageError(f"target {self.name} was not prepared")
        return self._world

    def settings(self, plan: Plan) -> Config:
        return settings(plan.config)

    def own_plan(self, prefix: str, seed: int, draw: Random) -> Plan:
        return drawn_plan(draw, seed, prefix=prefix)

    async def prepare(self, run: Run) -> None:
        self._world = LeasedWorld(run.plan, self._queue_class, f"{self.name}-{run.plan.seed}")

    async def until(self, run: Run, at_ms: int) -> None:
        """Let the virtual time pass."""
        self.world.run_until(max(at_ms, self.world.now_ms))

    async def start(self, party: str) -> None:
        self.world.perform("start", {"client": party})

    async def stop(self, party: str) -> None:
        self.world.perform("stop", {"client": party})

    async def act(self, action: Action) -> None:
        if action.do not in ("send", crash.VERB, pause.VERB, pause.HEALED_BY):
            raise UsageError(f"the target {self.name} can't do {action.do!r}")
        self.world.perform(action.do, action.args)

    async def settle(self, run: Run) -> bool:
        """Nothing comes after what the drain finds."""
        rests = self.world.settle(run.plan.settle_ms)
        if run.plan.drain:
            self.world.drain()
        self._rows = self.world.rows()
        return rests

    async def close(self) -> None:
        self._world = None

    def completed(self, rows: list[Row]) -> list[Row]:
        """The world's own, by its own clock, in the run that was recorded."""
        run = rows[0].run if rows else ""
        return [row._replace(run=run) for row in self._rows] if run else self._rows

    def search(self, profile: Profile, asked: Asked) -> Searched:
        verdict, _rounds = conform_rounds(
            self,
            profile,
            seed=asked.seed,
            rounds=asked.runs(ROUNDS),
            out=asked.out,
            floor=asked.at_stake(FLOOR),
            say=asked.say,
            stop=asked.stop,
        )
        return Searched(verdict)


class GroupedTarget(LeasedTarget):
    """A group with generations. made: its world, of a plan."""

    profile = GROUPED
    records = OF_GROUPS

    def __init__(self, bug: str = "", made: Callable[[Plan], GroupWorld] = GroupWorld) -> None:
        super().__init__()
        self.name = leased_name(bug or GROUPED)
        self.parties = grouped_parties(bug)
        self._made = made

    def settings(self, plan: Plan) -> Config:
        return grouped.settings(plan.config)

    async def prepare(self, run: Run) -> None:
        self._world = self._made(run.plan)


def bugs() -> tuple[str, ...]:
    """The mutants of leased messages, and of groups with generations."""
    return tuple(each.name for each in all_mutants(LEASED))


def target(argument: str | None = None) -> LeasedTarget:
    """The reference, or the mutant of that name. Raises UsageError with near matches for any other."""
    if argument is None:
        return LeasedTarget()
    if argument == GROUPED:
        return GroupedTarget()
    if argument not in bugs():
        raise UsageError(
            f"there is no mutant {argument!r} of leased messages; {known_names(argument, bugs())}"
        )
    bug = load(argument)
    if bug.is_of_a_group:
        classes = bug.coordinator or Coordinator, bug.log or SequencedLog
        return GroupedTarget(bug.name, lambda plan: GroupWorld(plan, *classes))
    assert bug.queue is not None, f"{bug.name} is one of leased messages"
    return LeasedTarget(bug.name, bug.queue)
