"""`python -m inorder.evidence.benchmarks`: what simulating, generating and judging cost on one core.

Every figure is the best of a few runs by CPU time of this process, so that other work on the machine matters
little; what can be said as a ratio within one run is said so. What a figure depends on stands beside it.
"""

from __future__ import annotations

import cProfile
import json
import pstats
import resource
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import click
from hypothesis.stateful import RuleBasedStateMachine
from rich import box
from rich.table import Table

from conformance.cli.people import console
from conformance.machines import cluster
from conformance.machines.cluster import Collector
from conformance.machines.drawing import drive
from conformance.reports import plots
from conformance.runner import STEPS, run_machine
from inorder.evidence import tables
from reference_impl.sim.cluster import Cluster
from reference_impl.sim.simulate import cluster_of, simulate
from specs.clauses.catalogue import all_clauses
from specs.clauses.clause import Clause
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.plan.config import Config
from specs.plan.plan import Action, ClientPlan, ListenerRule, Plan, TopicPlan, Topology
from specs.verdicts.examine import examine
from specs.verdicts.tally import Examination
from specs.vocabulary import Outcome

SIM_AIM = 100_000
JUDGE_AIM = 300_000
MACHINE_AIM = 2.0
TIMES = 3
EXAMPLES = 40


def cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def best_of(times: int, work: Callable[[], object]) -> float:
    """CPU seconds of the quickest of some runs."""
    found = []
    for _ in range(times):
        begun = cpu_s()
        work()
        found.append(cpu_s() - begun)
    return max(min(found), 1e-6)


def busy_plan(messages: int, seed: int = 1) -> Plan:
    """Two consumers, eight queues on two brokers, messages of sixteen keys; every tenth is suspended once."""
    clients = (
        ClientPlan("p1", "producer", topics=("orders",)),
        *(ClientPlan(name, "consumer", "billing", ("orders",)) for name in ("c1", "c2")),
    )
    starts = tuple(Action(0, "start", {"client": client.id}) for client in clients)
    share = max(1, messages // 64)
    sends = tuple(
        Action(
            200 + 40 * number,
            "send",
            {"client": "p1", "topic": "orders", "key": f"k{number % 16}", "count": share},
        )
        for number in range(64)
    )
    rules = (
        ListenerRule(),
        *(
            ListenerRule(Outcome.SUSPEND, 10, number=n, delivery_max=1)
            for n in range(1, share * 64, 10)
        ),
    )
    return Plan(
        seed=seed,
        topology=Topology(("b0", "b1"), (TopicPlan("orders", 4),), ("billing",)),
        config=replace(Config(), rebalance_ms=2_000, persist_ms=1_000),
        clients=clients,
        actions=(*starts, *sends),
        listener=rules,
        until_ms=60_000,
    )


@dataclass(frozen=True, slots=True)
class Recorded:
    info: RunInfo
    rows: list[Row]


def simulation(plan: Plan, times: int) -> tuple[int, float]:
    """(events, events per CPU second) of a plan that is simulated and recorded, and not judged."""
    events = 0

    def run() -> None:
        nonlocal events
        world: Cluster = cluster_of(plan, None)
        for action in plan.actions:
            world.run_until(action.at_ms)
            world.perform(action.do, action.args)
        for rule in plan.listener:
            world.add_rule(rule)
        world.run_until(plan.until_ms)
        world.settle(plan.settle_ms)
        events = world.events

    seconds = best_of(times, run)
    return events, events / seconds


def judging(recorded: Recorded, clauses: Sequence[Clause], times: int) -> float:
    """Rows per CPU second of the Python judge over these clauses."""
    return len(recorded.rows) / best_of(
        times, lambda: examine(recorded.rows, recorded.info, clauses)
    )


def _empty_machine() -> type[RuleBasedStateMachine]:
    """The cluster machine with all its rules, strategies and preconditions, whose rules do nothing."""
    nothing = {
        "do": lambda self, verb, **args: None,
        "wait": lambda self, ms: None,
        "listen": lambda self, rule: None,
        "load": lambda self, *args, **more: None,
        "decide": lambda self, *args, **more: None,
        "probe": lambda self, *args, **more: None,
        "teardown": lambda self: setattr(self, "cluster", None),
    }
    return type(
        "EmptyMachine",
        (cluster.ClusterMachine,),
        {"collector": Collector(lambda refuted: ()), **nothing},
    )


def where_time_goes(work: Callable[[], object], lines: int) -> list[tuple[str, float]]:
    """(function, share of the time spent in it alone) for the most expensive ones."""
    profile = cProfile.Profile()
    profile.runcall(work)
    stats = pstats.Stats(profile)
    spent: dict[tuple[str, int, str], tuple[int, int, float, float, object]] = stats.stats  # type: ignore[attr-defined]
    total = sum(each[2] for each in spent.values()) or 1.0
    named = [(f"{_short(file)}:{name}", each[2] / total) for (file, _, name), each in spent.items()]
    return sorted(named, key=lambda each: -each[1])[:lines]


def _short(file: str) -> str:
    path = Path(file)
    return "/".join(path.parts[-2:]).removesuffix(".py") if path.suffix == ".py" else file


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure. aim: what it should be, None where nobody says. more_is_better: it is a speed, and no cost."""

    what: str
    value: float
    text: str
    of: str
    aim: float | None = None
    aim_text: str = ""
    more_is_better: bool = True

    @property
    def share(self) -> float:
        """Of its aim: 1 and more is as it should be."""
        assert self.aim is not None, "a figure with an aim"
        return self.value / self.aim if self.more_is_better else self.aim / self.value

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def table_of(figures: Sequence[Figure]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False)
    for name in ("what", "figure", "aim", "of"):
        table.add_column(name, justify="left" if name in ("what", "of") else "right")
    for each in figures:
        table.add_row(each.what, each.text, each.aim_text, each.of)
    return table


def picture(figures: Sequence[Figure]) -> Element:
    """Each figure beside its aim, on one scale: a bar that reaches the line is as it should be."""
    rows = [
        plots.Bar(each.what, each.share, f"{each.text} (aim {each.aim_text})", mark=1.0)
        for each in figures
        if each.aim is not None
    ]
    unit = "the line is the aim; of a cost, less is a longer bar"
    return plots.bars("bench", "What simulating and judging cost, beside the aims", rows, unit=unit)


def figures_of(messages: int, times: int, examples: int) -> list[Figure]:
    found: list[Figure] = []
    plan = busy_plan(messages)
    events, speed = simulation(plan, times)
    found.append(
        Figure(
            "simulated events per CPU second",
            speed,
            f"{speed:,.0f}",
            f"{events:,} events",
            SIM_AIM,
            f"{SIM_AIM:,}",
        )
    )

    recorded = Recorded(*simulate(plan, None))
    clauses = all_clauses()
    rate = judging(recorded, clauses, times)
    found.append(
        Figure(
            "judged rows per CPU second",
            rate,
            f"{rate:,.0f}",
            f"{len(recorded.rows):,} rows, {len(clauses)} clauses",
            JUDGE_AIM,
            f"{JUDGE_AIM:,}",
        )
    )
    small = Recorded(*simulate(busy_plan(max(64, messages // 8)), None))
    ratio = judging(small, clauses, times) / rate
    words = f"{len(small.rows):,} beside {len(recorded.rows):,} rows"
    what = "cost of a row, long beside short history"
    found.append(Figure(what, ratio, f"{ratio:.2f}", words, 1.0, "1.00", more_is_better=False))

    machine = best_of(1, lambda: run_machine(Collector(lambda refuted: ()), 1, examples))
    silent = best_of(1, lambda: run_machine_unjudged(examples))
    empty = best_of(1, lambda: drive(_empty_machine(), 1, examples, STEPS))
    of = f"{examples} examples"
    for what, ratio, aim in (
        ("machine, judged, beside an empty one", machine / empty, MACHINE_AIM),
        ("machine, not judged, beside an empty one", silent / empty, None),
    ):
        told = "" if aim is None else f"{aim:.1f}"
        found.append(Figure(what, ratio, f"{ratio:.1f}", of, aim, told, more_is_better=False))
    return found


def run_machine_unjudged(examples: int) -> None:
    """The cluster machine with its clusters, and nobody who judges what happens."""
    run_machine(Collector(lambda refuted: (), judge=lambda rows, info: Examination()), 1, examples)


def _shares(title: str, shares: Sequence[tuple[str, float]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, title=title, title_justify="left")
    table.add_column("where")
    table.add_column("share", justify="right")
    for name, share in shares:
        table.add_row(name, f"{share:.1%}")
    return table


def clause_costs(recorded: Recorded, lines: int) -> list[tuple[str, float]]:
    """(clause, its share of what judging costs), the dearest first: each judged alone, less the bare pass."""
    bare = best_of(2, lambda: examine(recorded.rows, recorded.info, ()))
    cost = {
        clause.id: max(
            0.0,
            best_of(2, partial(examine, recorded.rows, recorded.info, (clause,))) - bare,
        )
        for clause in all_clauses()
    }
    total = sum(cost.values()) + bare or 1.0
    shares = [
        ("the pass itself, without a clause", bare / total),
        *((name, each / total) for name, each in cost.items()),
    ]
    return sorted(shares, key=lambda each: -each[1])[:lines]


@click.command()
@click.option("--messages", type=click.IntRange(64), default=4_096, show_default=True)
@click.option(
    "--times",
    type=click.IntRange(1),
    default=TIMES,
    show_default=True,
    help="The best of so many runs.",
)
@click.option("--examples", type=click.IntRange(1), default=EXAMPLES, show_default=True)
@click.option(
    "--profile/--no-profile", default=True, show_default=True, help="Show where the time goes."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Keep the figures there, as bench.json and as a picture, bench.svg.",
)
def main(messages: int, times: int, examples: int, profile: bool, out: Path | None) -> None:
    """Figures of the simulation, the machine and the Python judge."""
    people = console()
    figures = figures_of(messages, times, examples)
    people.print(table_of(figures))
    if out is not None:
        tables.draw(out / "bench.svg", picture(figures))
        data = json.dumps([each.to_json() for each in figures], indent=2)
        (out / "bench.json").write_text(data + "\n", encoding="utf-8")
    if profile:
        plan = busy_plan(messages)
        recorded = Recorded(*simulate(plan, None))
        people.print(_shares("judging, by clause", clause_costs(recorded, 12)))
        people.print(
            _shares(
                "judging, by function",
                where_time_goes(lambda: examine(recorded.rows, recorded.info), 12),
            )
        )
        people.print(
            _shares("simulating, by function", where_time_goes(lambda: simulate(plan, None), 15))
        )


if __name__ == "__main__":
    main()
