"""The simulated targets: our reference, and the reference with one known bug.

A machine drives the simulated cluster directly (see `conformance.runner`); as a target it can be driven by
anything that has a plan. Its clock is virtual: time passes when an action's time comes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from conformance import again
from conformance.targets.base import Asked, ClockKind, Run, Searched, Target, known_names
from reference_impl.mutants import LEASED, MODEL, VECTORS, Mutant, all_mutants, load
from reference_impl.sim.cluster import Cluster
from reference_impl.sim.simulate import (
    RECORDED,
    cluster_of,
    parties_of,
    runinfo_of,
    target_name,
    with_config,
)
from specs.errors import UsageError
from specs.faults import broker_crash
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.plan.ability import Ability
from specs.plan.config import FLUSHES, IN_MEMORY, Config
from specs.plan.plan import Action, Plan
from specs.profiles import Profile

PROFILE = "reference"
"""What the reference promises: everything, with nothing allowed."""
ON_DISK = tuple(flush for flush in FLUSHES if flush != IN_MEMORY)
"""What the target `reference` takes as its argument."""


class SimulatedTarget(Target):
    """mutant: None for the correct reference. flush: what the brokers keep their messages on.

    plan_config: what every plan's configuration has to say, therefore.
    """

    clock = ClockKind.VIRTUAL
    abilities = frozenset(Ability) - {Ability.WIRE, Ability.PROGRESS}
    profile = PROFILE
    any_way = True
    records = RECORDED
    config = Config()

    def __init__(self, mutant: Mutant | None = None, flush: str = IN_MEMORY) -> None:
        self.mutant = mutant
        self.plan_config: Mapping[str, object] = {} if flush == IN_MEMORY else {"flush": flush}
        self.name = target_name(mutant, flush)
        self.parties = parties_of(mutant)
        self._cluster: Cluster | None = None
        self._plan = Plan()
        self.rows: list[Row] = []
        """Of the last run, from its rest on."""

    @property
    def cluster(self) -> Cluster:
        """The cluster, once prepared. Raises UsageError before."""
        if self._cluster is None:
            raise UsageError(f"target {self.name} was not prepared")
        return self._cluster

    def suited(self, plan: Plan) -> Plan:
        return with_config(plan, self.plan_config)

    def settings(self, plan: Plan) -> Config:
        return runinfo_of(plan, self.mutant).config

    async def prepare(self, run: Run) -> None:
        self._plan = run.plan
        self._cluster = cluster_of(run.plan, self.mutant)

    async def until(self, run: Run, at_ms: int) -> None:
        """Let the virtual time pass."""
        if at_ms > self.cluster.now_ms:
            self.cluster.run_until(at_ms)

    async def start(self, party: str) -> None:
        """A client, or a broker that was crashed."""
        if party in self._plan.topology.brokers:
            self.cluster.perform(broker_crash.HEALED_BY, {"broker": party})
        else:  # what does not fit the moment does nothing: the first is for who never ran, the other for who did
            self.cluster.perform("start", {"client": party})
            self.cluster.perform("restart", {"client": party})

    async def act(self, action: Action) -> None:
        self.cluster.perform(action.do, action.args)

    async def stop(self, party: str) -> None:
        """A client in good order."""
        self.cluster.perform("stop", {"client": party})

    async def settle(self, run: Run) -> bool:
        """Let the faults heal and the cluster come to rest, and drain it: nothing comes after what that finds."""
        rests = self.cluster.settle(self._plan.settle_ms)
        if self._plan.drain:
            self.cluster.drain()
        self.rows = self.cluster.rows()
        return rests

    async def close(self) -> None:
        self._cluster = None

    def completed(self, rows: list[Row]) -> list[Row]:
        """The cluster's own: it records in memory, by its own clock."""
        return self.rows

    @property
    def info(self) -> RunInfo:
        """What a judge must know about the run of the prepared plan."""
        return runinfo_of(self._plan, self.mutant)

    def search(self, profile: Profile, asked: Asked) -> Searched:
        """The machine looks for a run that breaks a promise, and shrinks it."""
        from conformance.runner import EXAMPLES, FLOOR, conform_simulated

        result = conform_simulated(
            None if self.mutant is None else self.mutant.name,
            asked.seed,
            profile,
            examples=asked.runs(EXAMPLES),
            floor=asked.at_stake(FLOOR),
            progress=asked.progress,
            config=self.plan_config,
            stop=asked.stop,
        )
        result.save(asked.out)
        info = replace(result.verdict.info, replay=again.command("replay", asked.out))
        is_of_all = result.verdict.coverage is not None
        verdict = replace(result.verdict, info=info)
        return Searched(verdict, result.events if is_of_all else None, result.reached)


def reference(argument: str | None = None) -> SimulatedTarget:
    """Our reference, simulated; `reference:sync`, `:async`: on disks that lose what was not synced.

    Raises UsageError for any other argument.
    """
    if argument is None:
        return SimulatedTarget()
    if argument not in ON_DISK:
        raise UsageError(
            f"target reference takes no argument {argument!r}; {known_names(argument, ON_DISK)}"
        )
    return SimulatedTarget(flush=argument)


def mutant_names() -> tuple[str, ...]:
    """The mutants that a history of the simulated cluster shows."""
    return tuple(each.name for each in all_mutants())


def mutant(argument: str | None = None) -> SimulatedTarget:
    """The reference with the bug of that name.

    Raises UsageError with near matches for any other.
    """
    if not argument:
        raise UsageError(
            f"name the mutant, as in mutant:{mutant_names()[0]}; {known_names('', mutant_names())}"
        )
    ways = ((MODEL, "the wire rules do"), (VECTORS, "a table of vectors does"))
    for oracle, what in (*ways, (LEASED, f"the target {LEASED}:{argument} does")):
        if argument in {each.name for each in all_mutants(oracle)}:
            raise UsageError(
                f"no history of a cluster at work shows the mutant {argument}: only {what}"
            )
    if argument not in mutant_names():
        raise UsageError(
            f"there is no mutant {argument!r}; {known_names(argument, mutant_names())}"
        )
    return SimulatedTarget(load(argument))
