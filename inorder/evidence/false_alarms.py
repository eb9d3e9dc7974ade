"""No false alarm: many generated plans on the correct reference, and nothing may be said against any of them.

A clause that cries wolf is worse than none. So the same machine that finds the mutants drives the correct
reference, plan after plan; a clause that is refuted, or possible, by any of them is unsound, or the reference has a
bug. And a clause that is never at stake is no clause: each must be at stake in a good number of the plans.

`python -m inorder.evidence.false_alarms --plans 10000` prints the table. A share of the plans is a cell of the grid: a
run that was ended goes on where it was, and what is there already of the same code is not driven again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from conformance.cli.people import console
from conformance.machines.cluster import Collector, Run
from conformance.runner import run_machine
from inorder.evidence import grid, tables
from inorder.evidence.options import GridOptions, close, grid_options, in_a_sentence
from specs import profiles
from specs.clauses.catalogue import all_clauses

SHARE = 100
"""Plans of one task: a seed of its own, so that the result does not depend on the number of workers."""
PROFILES = (
    *["reference"] * 7,
    "reference-concurrent",
    "reference-key-ordered",
    "reference-broadcast",
)
"""One share after the other is of the next of these: how the groups of its plans consume."""
CODE = ("specs", "reference_impl", "conformance", "inorder/evidence/false_alarms.py")
"""What the answer depends on."""
AT_LEAST = 100
"""Of 10,000 plans, each clause must be at stake in so many."""


_NUMBERS = ("plans", "at stake", "against")


@dataclass(slots=True)
class Count:
    """Of one clause. plans: in how many it was at stake; against: findings, also those that are only possible."""

    plans: int = 0
    opportunities: int = 0
    against: int = 0

    def add(self, other: Count) -> None:
        self.plans += other.plans
        self.opportunities += other.opportunities
        self.against += other.against


@dataclass(slots=True)
class Silence:
    """What many plans came to. broken: seeds and reasons of what must not be."""

    plans: int = 0
    events: int = 0
    counts: dict[str, Count] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)

    def add(self, other: Silence) -> None:
        self.plans += other.plans
        self.events += other.events
        self.broken += other.broken
        for clause, count in other.counts.items():
            self.counts.setdefault(clause, Count()).add(count)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Silence:
        """What `asdict` told."""
        counts = {clause: Count(**count) for clause, count in data["counts"].items()}
        return cls(data["plans"], data["events"], counts, list(data["broken"]))

    def seldom(self, at_least: int) -> list[str]:
        """The clauses that were at stake in fewer plans."""
        return [clause for clause, count in self.counts.items() if count.plans < at_least]


def listen(seed: int, plans: int, profile: str = PROFILES[0]) -> Silence:
    """Some plans of one seed, and what is said of the clauses that the profile claims."""
    heard = Silence(counts={clause.id: Count() for clause in all_clauses()})
    asked = profiles.load(profile)
    claimed = {clause.id for clause in all_clauses() if asked.claim(clause.id).status == "claimed"}

    def take(run: Run) -> None:
        heard.plans += 1
        heard.events += run.events
        examination = run.examination
        for clause, tally in examination.tallies.items():
            if clause not in claimed:
                continue
            against = tally.violations + tally.possible
            heard.counts[clause].add(
                Count(int(tally.opportunities > 0), tally.opportunities, against)
            )
            if against:
                heard.broken.append(f"{profile}, seed {seed}: {clause}: {tally.explanation}")
        heard.broken += [
            f"{profile}, seed {seed}: inadmissible: {reason}" for reason in examination.facts.broken
        ]

    run_machine(Collector(lambda refuted: (), on_run=take, config=asked.config), seed, plans)
    return heard


def listen_long(
    seed: int,
    plans: int,
    workers: int = 2,
    told: Callable[[Silence], None] = lambda so_far: None,
    *,
    store: Path | None = None,
    budget_s: float | None = None,
    fresh: bool = False,
    made: Callable[[grid.Done], None] = lambda cell: None,
) -> Silence:
    """Plans of many seeds, `SHARE` of each, beginning with `seed`.

    store, budget_s, fresh: as `inorder.evidence.grid.run` has them. made: told of each share.
    """
    total = Silence()
    for done in grid.run(
        shares(seed, plans), share, store, budget_s=budget_s, workers=workers, fresh=fresh
    ):
        if done.error is not None:
            raise done.error
        total.add(Silence.from_json(done.value))
        made(done)
        told(total)
    total.broken.sort()
    return total


def shares(seed: int, plans: int) -> Sequence[grid.Cell]:
    """The cells: each is of a seed of its own, and of the next profile."""
    keys = [
        {
            "seed": seed + number,
            "plans": min(SHARE, plans - done),
            "profile": PROFILES[number % len(PROFILES)],
            **grid.code_key(*CODE),
        }
        for number, done in enumerate(range(0, plans, SHARE))
    ]
    return [grid.Cell("false alarms", f"{key['profile']} seed {key['seed']}", key) for key in keys]


def share(cell: grid.Cell) -> dict[str, Any]:
    """Make a cell."""
    return asdict(listen(cell.key["seed"], cell.key["plans"], cell.key["profile"]))


def table(heard: Silence) -> Table:
    """Clause by clause: plans in which it was at stake, how often in all, and what was said against it."""
    rows = [
        (clause, f"{count.plans:,}", f"{count.opportunities:,}", f"{count.against:,}")
        for clause, count in heard.counts.items()
    ]
    return tables.terminal(("clause", *_NUMBERS), rows, right=_NUMBERS)


@click.command()
@click.option("--plans", type=click.IntRange(1), default=10_000, show_default=True)
@grid_options(out="Where finished shares are kept: runs/false-alarms-SEED if not given.", workers=2)
@in_a_sentence
def main(plans: int, how: GridOptions) -> None:
    """Drive the correct reference with many plans.

    Exit code: 0 when nothing is said against it, 1 when something is, 2 when --budget left some plans.
    """
    people = console()
    cells: list[grid.Done] = []
    heard = listen_long(
        how.seed,
        plans,
        told=lambda so_far: people.print(f"{so_far.plans:,} plans"),
        store=how.folder("false-alarms"),
        made=cells.append,
        **how.asked,
    )
    people.print(table(heard))
    people.print(f"{heard.plans:,} plans, {heard.events:,} events; against: {len(heard.broken)}")
    for reason in heard.broken[:10]:
        people.print(reason)
    total = len(shares(how.seed, plans))
    raise SystemExit(close(cells, total, wrong=bool(heard.broken), say=people.print))


if __name__ == "__main__":
    main()
