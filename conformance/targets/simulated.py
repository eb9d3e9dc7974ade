"""The simulated targets: our reference, and the reference with one known bug.

A machine drives the simulated cluster directly (see `conformance.runner`); as a target it can be driven by
anything that has a plan. Its clock is virtual: time passes when an action's time comes.
"""

from __future__ import annotations

from collections.abc import Mapping

from conformance.targets.base import ClockKind, known_names
from reference_impl.mutants import MODEL, VECTORS, Mutant, all_mutants, load
from reference_impl.sim.cluster import Cluster
from reference_impl.sim.simulate import cluster_of, parties_of, runinfo_of, target_name, with_config
from specs.errors import UsageError
from specs.faults import broker_crash
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.plan.ability import Ability
from specs.plan.config import FLUSHES, IN_MEMORY
from specs.plan.plan import Action, Plan

PROFILE = "reference"
"""What the reference promises: everything, with nothing allowed."""
ON_DISK = tuple(flush for flush in FLUSHES if flush != IN_MEMORY)
"""What the target `reference` takes as its argument."""


class SimulatedTarget:
    """mutant: None for the correct reference. flush: what the brokers keep their messages on.

    config: what every plan's configuration has to say, therefore.
    """

    clock = ClockKind.VIRTUAL
    abilities = frozenset(Ability) - {Ability.WIRE}
    profile = PROFILE

    def __init__(self, mutant: Mutant | None = None, flush: str = IN_MEMORY) -> None:
        self.mutant = mutant
        self.config: Mapping[str, object] = {} if flush == IN_MEMORY else {"flush": flush}
        self.name = target_name(mutant, flush)
        self.parties: Mapping[str, str] = parties_of(mutant)
        self._cluster: Cluster | None = None
        self._plan = Plan()

    @property
    def cluster(self) -> Cluster:
        """The cluster, once prepared. Raises UsageError before."""
        if self._cluster is None:
            raise UsageError(f"target {self.name} was not prepared")
        return self._cluster

    async def prepare(self, plan: Plan) -> None:
        self._plan = plan = with_config(plan, self.config)
        self._cluster = cluster_of(plan, self.mutant)

    async def start(self, party: str) -> None:
        """A client for the first time, or a broker that was crashed."""
        is_broker = party in self._plan.topology.brokers
        self.cluster.perform(
            broker_crash.HEALED_BY if is_broker else "start",
            {"broker" if is_broker else "client": party},
        )

    async def act(self, action: Action) -> None:
        if action.at_ms > self.cluster.now_ms:
            self.cluster.run_until(action.at_ms)
        self.cluster.perform(action.do, action.args)

    async def stop(self, party: str) -> None:
        """A client in good order; a broker of the simulated world can only crash."""
        is_broker = party in self._plan.topology.brokers
        self.cluster.perform(
            broker_crash.VERB if is_broker else "stop", {"broker" if is_broker else "client": party}
        )

    async def close(self) -> None:
        """Let the faults heal and the cluster come to rest, and drain it, as the plan says."""
        if self._cluster is not None:
            cluster, plan = self._cluster, self._plan
            if plan.until_ms > cluster.now_ms:
                cluster.run_until(plan.until_ms)
            cluster.settle(plan.settle_ms)
            if plan.drain:
                cluster.drain()
            self.rows: list[Row] = cluster.rows()
            self._cluster = None

    @property
    def info(self) -> RunInfo:
        """What a judge must know about the run of the prepared plan."""
        return runinfo_of(self._plan, self.mutant)


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
    """The reference with the bug of that name. Raises UsageError with near matches for any other."""
    if not argument:
        raise UsageError(
            f"name the mutant, as in mutant:{mutant_names()[0]}; {known_names('', mutant_names())}"
        )
    for oracle, what in ((MODEL, "the wire rules do"), (VECTORS, "a table of vectors does")):
        if argument in {each.name for each in all_mutants(oracle)}:
            raise UsageError(
                f"no history of a cluster at work shows the mutant {argument}: only {what}"
            )
    if argument not in mutant_names():
        raise UsageError(
            f"there is no mutant {argument!r}; {known_names(argument, mutant_names())}"
        )
    return SimulatedTarget(load(argument))
