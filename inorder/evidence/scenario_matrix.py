"""Does each scenario show the bug that it names? `python -m inorder.evidence.scenario_matrix`

All of it is simulated. For each bug that a scenario names, and for each of so many seeds, there are three runs: the
cluster with the bug, which the clause that the bug names must refute; the correct cluster, which must be upheld; and
the cluster with the bug while the faults befall somebody else (`chaos.bystanders`), which must not be refuted by that
clause: a bug that shows without the fault says nothing about the scenario. A scenario that names no bug has the second
run alone. With --all each scenario also meets the bugs that the others name, with the first seed.

The correct cluster has twice as many seeds, and as many again where its broker answers after the sync, unless the
scenario says itself when the broker syncs. Of these runs stakes.md tells how many messages they had, and how often the
scenario's clauses were at stake while something was broken.

The cells are kept in the folder, beside them matrix.json, matrix.md, matrix.svg and stakes.md. Exit code: 1 where a
bug was not refuted, the correct cluster was, or a bug showed in more than a fifth of the runs without effect; 70 when a
run failed; 2 when --budget left some; else 0.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from chaos.bystanders import befalls_bystanders
from chaos.runner import judged, of_twin, twin_plan
from chaos.scenario import load, names
from chaos.twin import play
from conformance.cli.options import print_human
from conformance.cli.people import tell
from conformance.parts.processes import exit_on_sigterm
from conformance.reports import plots
from conformance.targets.simulated import PROFILE, SimulatedTarget
from inorder.evidence import grid, tables
from inorder.evidence.chaos_grid import cells as chaos_grid
from inorder.evidence.chaos_grid.at_stake import at_stake, trouble_of
from inorder.evidence.options import GridOptions, close, grid_options, in_a_sentence
from reference_impl.mutants import load as load_mutant
from specs import profiles
from specs.clauses.catalogue import get
from specs.errors import EXIT_SUITE
from specs.fingerprint import code_digest
from specs.verdicts.examine import examine
from specs.verdicts.verdict import RunVerdict

SEEDS = 10
CODE = (*chaos_grid.CODE, "inorder/evidence/scenario_matrix.py")
CORRECT = "reference"
SHOWN, BESIDE, SYNC = "shown", "beside", "sync"
TIMES_CORRECT = 2
"""So many times as many seeds has the correct cluster: a false alarm is rarer than a bug."""
WITHOUT_EFFECT_MOST = 5
"""A bug may show in one of so many runs without effect: some chance is no need."""
Row = tuple[str, ...]


def cell_of(
    scenario: str, bug: str, seed: int, *, beside: bool = False, sync: bool = False
) -> grid.Cell:
    """A run of a scenario with a bug, or with none (`CORRECT`). sync: its broker answers after the sync."""
    way = f" {BESIDE}" if beside else f" {SYNC}" if sync else ""
    key = {"scenario": scenario, "bug": bug, "seed": seed, BESIDE: beside, SYNC: sync}
    text = {"text": code_digest(f"{chaos_grid.SCENARIOS}/{scenario}.toml")}
    name = f"{scenario} on {bug}{way}, seed {seed}"
    return grid.Cell("scenarios", name, {**key, **grid.code_key(*CODE), **text})


def cells_of(wanted: Sequence[str], seeds: Sequence[int], *, every: bool) -> Iterator[grid.Cell]:
    """every: each scenario meets the bugs of the others too."""
    bugs = sorted({bug for name in names() for bug in load(name).shows})
    for seed in seeds:
        for name in wanted:
            own = load(name).shows
            for bug in own:
                yield cell_of(name, bug, seed)
                yield cell_of(name, bug, seed, beside=True)
            if every and seed == seeds[0]:
                yield from (cell_of(name, bug, seed) for bug in bugs if bug not in own)
    correct = range(seeds[0], seeds[0] + TIMES_CORRECT * len(seeds))
    for seed in correct:
        for name in wanted:
            yield cell_of(name, CORRECT, seed)
            if "flush" not in load(name).config:
                yield cell_of(name, CORRECT, seed, sync=True)


def make(cell: grid.Cell) -> dict[str, Any]:
    """Its run, judged."""
    scenario, bug = load(cell.key["scenario"]), cell.key["bug"]
    plan = twin_plan(scenario, cell.key["seed"])
    if cell.key[BESIDE]:
        plan = befalls_bystanders(plan)
    if cell.key[SYNC]:
        plan = replace(plan, config=replace(plan.config, flush="sync"))
    twin = play(plan, None if bug == CORRECT else load_mutant(bug))
    if bug != CORRECT:  # judged by the one clause that is asked for: that takes half the time
        return {"refuted": list(examine(twin.rows, twin.info, [get(clause_of(bug))]).refuted())}
    made = of_twin(twin, twin.info)
    verdict = judged(scenario, made, profiles.load(PROFILE), SimulatedTarget.abilities)
    missed = [f"{check.title}: {check.detail}" for check in verdict.met if check.ok is False]
    clauses = [get(clause) for clause in scenario.clauses]
    trouble = trouble_of(made.told, min(row.started_us for row in twin.rows))
    return {
        "refuted": list(made.found.refuted()),
        "word": verdict.verdict.value,
        "missed": missed,
        "sends": made.found.facts.sends,
        "stakes": at_stake(twin.rows, twin.info, clauses, trouble),
    }


@click.command(help=__doc__)
@click.option(
    "--scenario",
    "wanted",
    multiple=True,
    type=click.Choice(names()),
    metavar="S",
    help="Only this one; may be repeated.",
)
@click.option(
    "--seeds",
    type=click.IntRange(1),
    default=SEEDS,
    show_default=True,
    help="How many, from --seed on.",
)
@click.option("--all", "every", is_flag=True, help="Each scenario on the bugs of the others too.")
@grid_options(out="Where to keep it: runs/scenario-matrix-SEED if not given.", workers=1)
@in_a_sentence
def main(wanted: tuple[str, ...], seeds: int, how: GridOptions, *, every: bool) -> None:
    """See the module."""
    exit_on_sigterm()
    root = how.folder("scenario-matrix")
    scenarios = wanted or names()
    cells = list(cells_of(scenarios, range(how.seed, how.seed + seeds), every=every))
    made: list[grid.Done] = []
    for done in how.make(cells, make, root / "cells"):
        made.append(done)
        if done.error is not None:
            tell(f"{done.cell.name}: {done.error}")
    kept = [done for done in made if done.error is None]
    found = [Line.of(name, bug, kept) for name in scenarios for bug in load(name).shows or ("",)]
    print_human(
        tables.terminal(HEAD, [line.row for line in found], bad=lambda n: found[n].is_wrong)
    )
    root.mkdir(parents=True, exist_ok=True)
    write(root, found, kept)
    code = close(made, len(cells), wrong=any(line.is_wrong for line in found))
    sys.exit(EXIT_SUITE if len(kept) < len(made) else code)


HEAD = (
    "scenario",
    "bug",
    "clause",
    "refuted",
    "correct upheld",
    "after the sync",
    "silent without effect",
)


class Line:
    """What all seeds of a scenario and a bug came to: of how many runs, in how many was it as it must be?"""

    def __init__(self, scenario: str, bug: str, counts: Mapping[str, tuple[int, int]]) -> None:
        self.scenario, self.bug, self.counts = scenario, bug, counts

    @classmethod
    def of(cls, scenario: str, bug: str, kept: Sequence[grid.Done]) -> Line:
        """From the cells that were made. bug: empty for a scenario that names none."""
        clause = clause_of(bug)
        told: dict[str, list[bool]] = {SHOWN: [], CORRECT: [], SYNC: [], BESIDE: []}
        for done in kept:
            key, refuted = done.cell.key, done.value["refuted"]
            if key["scenario"] != scenario:
                continue
            if key["bug"] == CORRECT:
                told[SYNC if key[SYNC] else CORRECT].append(done.value["word"] == RunVerdict.UPHELD)
            elif key["bug"] == bug:
                told[BESIDE if key[BESIDE] else SHOWN].append((clause in refuted) != key[BESIDE])
        return cls(scenario, bug, {way: (sum(each), len(each)) for way, each in told.items()})

    @property
    def is_wrong(self) -> bool:
        """A bug that was not shown, a correct cluster that was not upheld, a bug that needs no fault."""
        beside, of = self.counts[BESIDE]
        exact = all(
            right == total for right, total in (self.counts[way] for way in (SHOWN, CORRECT, SYNC))
        )
        return not exact or (of - beside) * WITHOUT_EFFECT_MOST > of

    @property
    def row(self) -> Row:
        told = (f"{right} of {of}" if of else "" for right, of in self.counts.values())
        return (self.scenario, self.bug, clause_of(self.bug), *told)

    def to_json(self) -> dict[str, Any]:
        named = {
            way: {"as it must be": right, "of": of} for way, (right, of) in self.counts.items()
        }
        return {"scenario": self.scenario, "bug": self.bug, "clause": clause_of(self.bug), **named}


def clause_of(bug: str) -> str:
    """What must refute it."""
    return load_mutant(bug).killed_by if bug else ""


def write(root: Path, found: Sequence[Line], kept: Sequence[grid.Done]) -> None:
    """The table as JSON and as Markdown, and a picture: who shows what."""
    data = [line.to_json() for line in found]
    (root / "matrix.json").write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
    lines = tables.markdown(HEAD, [line.row for line in found])
    (root / "matrix.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    stakes = tables.markdown(STAKES, [stakes_of(name, kept) for name in scenarios_of(kept)])
    (root / "stakes.md").write_text("\n".join(stakes) + "\n", encoding="utf-8")
    if kept:
        tables.draw(root / "matrix.svg", picture(kept))


STAKES = (
    "scenario",
    "runs",
    "messages at least",
    "clauses at stake: in the run with fewest, in all",
)


def scenarios_of(kept: Sequence[grid.Done]) -> list[str]:
    """Those with a run of the correct cluster."""
    return sorted({done.cell.key["scenario"] for done in kept if done.cell.key["bug"] == CORRECT})


def stakes_of(scenario: str, kept: Sequence[grid.Done]) -> Row:
    """The workload of its correct runs, and how often its clauses were at stake while something was broken."""
    runs = [
        done.value
        for done in kept
        if done.cell.key["scenario"] == scenario and done.cell.key["bug"] == CORRECT
    ]
    told = (
        f"{clause} {min(numbers)}, {sum(numbers)}"
        for clause in load(scenario).clauses
        if (numbers := [run["stakes"][clause] for run in runs])
    )
    return (scenario, str(len(runs)), str(min(run["sends"] for run in runs)), "; ".join(told))


def picture(kept: Sequence[grid.Done]) -> Any:
    """By scenario and bug: in how many of the runs with effect the bug's clause was refuted."""
    shown: dict[tuple[str, str], list[bool]] = {}
    for done in kept:
        key = done.cell.key
        if not key[BESIDE] and key["bug"] != CORRECT:
            right = clause_of(key["bug"]) in done.value["refuted"]
            shown.setdefault((key["scenario"], key["bug"]), []).append(right)
    cells = {place: _cell(place, each) for place, each in shown.items()}
    rows, columns = (sorted({place[n] for place in cells}) for n in (0, 1))
    title = "Scenarios, and the bugs that they show"
    return plots.heat_map("scenarios", title, rows, columns, cells)


def _cell(place: tuple[str, str], shown: Sequence[bool]) -> plots.Cell:
    told = f"{clause_of(place[1])} refuted in {sum(shown)} of {len(shown)}"
    if place[1] in load(place[0]).shows and not all(shown):
        return plots.Cell(plots.Kind.BAD, f"{sum(shown)}", told)
    kind = plots.Kind.GOOD if any(shown) else plots.Kind.SILENT
    return plots.Cell(kind, f"{sum(shown)}" if any(shown) else "", told)


if __name__ == "__main__":
    main()
