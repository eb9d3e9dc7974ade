"""From a plan to a history: the same plan gives the same bytes, on every machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from reference_impl import records
from reference_impl.core.producer import Producer
from reference_impl.mutants import Mutant, load
from reference_impl.sim.cluster import Cluster, Cores
from specs.history.row import Row
from specs.history.runinfo import RunInfo, declared
from specs.plan.config import IN_MEMORY
from specs.plan.plan import Plan
from specs.vocabulary import Kind

REFERENCE = "inorder reference"
RECORDED = declared(
    client=records.OF_CLIENTS | {Kind.CRASH, Kind.PAUSE, Kind.CLOCK_STEP, Kind.FAULT, Kind.RESET},
    wire=records.OF_PROBERS | {Kind.READ},
    store=records.OF_BROKERS,
)
"""Everything that happens in a simulated world; of questions that nobody judges (MEMBER, ROUTE) there are no rows."""


def cores_of(mutant: Mutant | None) -> Cores:
    """The classes that the nodes run."""
    if mutant is None:
        return Cores()
    return Cores(mutant.broker, mutant.consumer, mutant.producer or Producer)


def parties_of(mutant: Mutant | None) -> Mapping[str, str]:
    """Who implements broker, client and producer, for a verdict."""
    if mutant is None:
        return {"broker": REFERENCE, "client": REFERENCE, "producer": REFERENCE}
    name = f"inorder mutant {mutant.name}"
    correct = Cores()
    cores = cores_of(mutant)
    return {
        "broker": name if cores.broker is not correct.broker else REFERENCE,
        "client": name if cores.consumer is not correct.consumer else REFERENCE,
        "producer": name if cores.producer is not correct.producer else REFERENCE,
    }


def target_name(mutant: Mutant | None, flush: str = IN_MEMORY) -> str:
    """flush: of the plan. A mutant's name stays its own: what it needs of a plan, it says itself."""
    if mutant is not None:
        return f"mutant:{mutant.name}"
    return "reference" if flush == IN_MEMORY else f"reference:{flush}"


def run_name(mutant: Mutant | None, plan: Plan) -> str:
    return f"{target_name(mutant, plan.config.flush).replace(':', '-')}-{plan.seed}"


def runinfo_of(plan: Plan, mutant: Mutant | None) -> RunInfo:
    """What a judge must know about a run of the plan. In virtual time nothing lies between two lines of code."""
    return RunInfo(
        run=run_name(mutant, plan),
        seed=plan.seed,
        target=target_name(mutant, plan.config.flush),
        parties=parties_of(mutant),
        levels=("client", "wire", "store"),
        clock_bounds_us={"virtual": 0},
        closed_world=True,
        records=RECORDED,
        settles=True,
        config=replace(plan.config, guard_slack_ms=0, disk_slack_ms=0),
        plan=plan.to_json(),
    )


def cluster_of(plan: Plan, mutant: Mutant | None) -> Cluster:
    return Cluster(plan, cores_of(mutant), run_name(mutant, plan))


def simulate(plan: Plan, mutant: Mutant | str | None = None) -> tuple[RunInfo, list[Row]]:
    """Run the plan. mutant: run that one instead of the correct reference."""
    if isinstance(mutant, str):
        mutant = load(mutant)
    cluster = play(plan, mutant)
    return runinfo_of(plan, mutant), cluster.rows()


def play(plan: Plan, mutant: Mutant | None) -> Cluster:
    """The cluster after the whole plan."""
    cluster = cluster_of(plan, mutant)
    for action in plan.actions:
        if action.at_ms > cluster.now_ms:
            cluster.run_until(action.at_ms)
        cluster.perform(action.do, action.args)
    if plan.until_ms > cluster.now_ms:
        cluster.run_until(plan.until_ms)
    cluster.settle(plan.settle_ms)
    if plan.drain:
        cluster.drain()
    return cluster


def with_config(plan: Plan, values: Mapping[str, object]) -> Plan:
    """The plan with some numbers of its configuration replaced."""
    return replace(plan, config=replace(plan.config, **values))  # type: ignore[arg-type]
