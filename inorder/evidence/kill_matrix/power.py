"""How soon each planted bug is found: `conformance/reports/power.json`, from which reports say how good `upheld` is.

    python -m inorder.evidence.kill_matrix.power [MUTANT...] [--seed N] [--seeds N] [--examples N] [--matrix FILE]
                                                 [--power FILE] [--out DIR] [--workers N] [--budget TIME] [--fresh]

As the kill matrix, but for the shrinking, by several seeds, and with nothing pinned that a search draws by itself: a
bug that needs a limit of retries has to wait here until one is drawn, as it would in `inorder conform`. A search by a
seed is a cell: one that was ended goes on where it was. --matrix names a matrix.json of `inorder mutants`, of this
code: its searches for mutants of which nothing is pinned are the same, and are taken from there. What FILE holds of
other mutants and seeds stays, and what it holds of mutants that there are no more goes. Exit code: 0 when all was
searched; 2 when --budget left some; 64 for wrong usage.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click

from conformance.cli.people import watching
from conformance.machines.cluster import Collector
from conformance.reports import power
from conformance.reports.power import POWER_SCHEMA
from conformance.reports.saving import check
from conformance.reports.schemas import MATRIX_SCHEMA
from conformance.runner import run_machine
from inorder.evidence import grid
from inorder.evidence.kill_matrix import of_leases
from inorder.evidence.kill_matrix.kill import EXAMPLES, WIRE_EXAMPLES
from inorder.evidence.kill_matrix.matrix import CODE as MATRIX_CODE
from inorder.evidence.kill_matrix.matrix import chosen
from inorder.evidence.kill_matrix.on_the_wire import break_rules
from inorder.evidence.options import GridOptions, close, grid_options, in_a_sentence
from reference_impl.mutants import HISTORY, LEASED, MODEL, Mutant, every_mutant, load
from specs.clauses.catalogue import get
from specs.errors import InorderError, UsageError

FILE = Path(power.__file__).with_name(power.FILE)
CODE = (*MATRIX_CODE, "inorder/evidence/kill_matrix/power.py")
SEEDS = 3
WORKERS = 2
DRAWN: Mapping[str, tuple[Any, ...]] = {
    "max_reconsume_times": (1, 2, 0, -1),
    "batch": (1, 2),
    "consume_from": ("first", "last", "timestamp"),
    "subscription": ("*", "Aa || red"),
}
"""What the cluster machine draws by itself at the begin of a run (`conformance.machines.cluster`)."""


def settings(bug: Mutant) -> dict[str, Any]:
    """What a plan has to say so that the bug has an occasion, and that no search says by itself."""
    return {name: value for name, value in bug.config.items() if value not in DRAWN.get(name, ())}


def cell_of(name: str, seed: int, examples: int) -> grid.Cell:
    """A search, and all that its result depends on."""
    key = {"mutant": name, "seed": seed, "examples": examples, **grid.code_key(*CODE)}
    return grid.Cell("power", f"{name} seed {seed}", key)


def search(cell: grid.Cell) -> dict[str, Any]:
    """Make a cell: the run that shows the bug, None where none does."""
    bug, seed, most = load(cell.key["mutant"]), cell.key["seed"], cell.key["examples"]
    run: int | None
    if bug.oracle == HISTORY:
        own = replace(bug, config=settings(bug))
        collector = Collector(
            lambda refuted: refuted if bug.killed_by in refuted else (),
            own,
        )
        run_machine(collector, seed, most)
        run = None if collector.broken is None else collector.runs
    elif bug.oracle == LEASED:
        found = of_leases.search(replace(bug, config=settings(bug)), get(bug.killed_by), seed, most)
        run = None if found.plan is None else found.runs
    elif bug.oracle == MODEL:
        most = WIRE_EXAMPLES
        broken, worlds = break_rules(bug, seed, most, until=bug.killed_by)
        run = worlds if bug.killed_by in broken else None
    else:
        most = run = (
            1  # a table holds every row each time; that it shows is the kill matrix's to say
        )
    return {"mutant": bug.name, "seed": seed, "most": most, "run": run}


def of_matrices(files: Sequence[Path]) -> list[dict[str, Any]]:
    """What kill matrices have searched for as it would be done here; UsageError for a file that is none."""
    found = []
    for file in files:
        try:
            data = json.loads(file.read_text(encoding="utf-8"))
            check(data, MATRIX_SCHEMA)
        except (OSError, ValueError, InorderError) as error:
            raise UsageError(f"{file} is no matrix of `inorder mutants`: {error}") from error
        for each in data["mutants"]:
            bug = next((bug for bug in every_mutant() if bug.name == each["name"]), None)
            if bug is None or bug.oracle != HISTORY or settings(bug) != dict(bug.config):
                continue
            run = each["examples"] if each["killed"] else None
            most = data["examples"]
            found.append({"mutant": bug.name, "seed": data["seed"], "most": most, "run": run})
    return found


def merged(before: Mapping[str, Any], found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The file's object: what is there of mutants and seeds that were not searched stays."""
    known = {name: bug for bugs in before.get("clauses", {}).values() for name, bug in bugs.items()}
    searched: dict[str, list[Mapping[str, Any]]] = {}
    for each in found:
        searched.setdefault(each["mutant"], []).append(each)
    clauses: dict[str, dict[str, Any]] = {}
    for bug in sorted(every_mutant(), key=lambda bug: (_place(bug.killed_by), bug.name)):
        if bug.name in searched:
            most = searched[bug.name][-1]["most"]
            told = {"oracle": bug.oracle, "settings": settings(bug), "most": most}
            old = known.get(bug.name, {})
            # Searches of another length, or of other plans, can't be counted together.
            runs = old["runs"] if old and told.items() <= old.items() else {}
            new = {str(e["seed"]): e["run"] for e in searched[bug.name] if e["most"] == most}
            both = {**runs, **new}
            told["runs"] = {seed: both[seed] for seed in sorted(both, key=int)}
        elif bug.name in known:
            told = known[bug.name]
        else:
            continue
        clauses.setdefault(bug.killed_by, {})[bug.name] = told
    tool = {"inorder": version("inorder"), **grid.code_key(*CODE)}
    return {"schema": POWER_SCHEMA, "tool": tool, "clauses": clauses}


def _place(clause: str) -> tuple[str, int]:
    family, _, number = clause.partition("-")
    return family, int(number)


def text_of(data: Mapping[str, Any]) -> str:
    """The file's text: a line for each bug, so that a change can be read."""
    head = {name: data[name] for name in ("schema", "tool")}
    lines = [f"  {json.dumps(name)}: {json.dumps(value)}," for name, value in head.items()]
    clauses = []
    for clause, bugs in data["clauses"].items():
        inner = ",\n".join(
            f"      {json.dumps(name)}: {json.dumps(bug, sort_keys=True)}"
            for name, bug in bugs.items()
        )
        clauses.append(f"    {json.dumps(clause)}: {{\n{inner}\n    }}")
    return "\n".join(["{", *lines, '  "clauses": {', ",\n".join(clauses), "  }", "}"]) + "\n"


@click.command(help=__doc__)
@click.argument("names", nargs=-1, metavar="[MUTANT]...")
@click.option(
    "--seeds",
    type=click.IntRange(1),
    default=SEEDS,
    show_default=True,
    metavar="N",
    help="Searches for each mutant: by --seed, and the numbers after it.",
)
@click.option(
    "--examples",
    type=click.IntRange(1),
    default=EXAMPLES,
    show_default=True,
    metavar="N",
    help="Runs of a search, at most.",
)
@click.option(
    "--matrix",
    "matrices",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Take searches from this matrix.json; may be repeated.",
)
@click.option(
    "--power",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    default=FILE,
    help="The file that is written.",
)
@grid_options(
    out="Where finished searches are kept: runs/power-SEED if not given.", workers=WORKERS
)
@in_a_sentence
def main(
    names: tuple[str, ...],
    seeds: int,
    examples: int,
    matrices: tuple[Path, ...],
    file: Path,
    how: GridOptions,
) -> None:
    """See the module."""
    there = [
        each
        for each in of_matrices(matrices)
        if each["mutant"] in chosen(names) and each["most"] == examples
    ]
    known = {(each["mutant"], each["seed"]) for each in there}
    # The first seed of all before the second: what a budget leaves out is the later ones.
    cells = [
        cell_of(name, seed, examples)
        for seed in range(how.seed, how.seed + seeds)
        for name in chosen(names)
        if (name, seed) not in known
    ]
    made: list[grid.Done] = []
    with watching() as watch:
        for done in how.make(cells, search, how.folder("power")):
            if done.error is not None:
                raise done.error
            made.append(done)
            if not done.resumed:
                run = done.value["run"]
                told = f"found in run {run}" if run else f"NOT FOUND in {done.value['most']} runs"
                watch.say(f"{done.cell.name}: {told}")
                watch.progress(len(made), len(cells), "searches")
    before = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    data = merged(before, [*there, *(done.value for done in made)])
    check(data, POWER_SCHEMA)
    file.write_text(text_of(data), encoding="utf-8")
    sys.exit(close(made, len(cells)))


if __name__ == "__main__":
    main()
