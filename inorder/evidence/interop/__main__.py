"""`make matrix`: puts every broker to work with every client, and refreshes `docs/matrix.md`.

    python -m inorder.evidence.interop [CELL...] [--only cells|features] [--feature NAME]
        [--seed N] [--rounds N] [--out DIR] [--budget TIME] [--fresh] [--page FILE]

A cell is named by its target, as reference+java:5.4.0; without a name all are run, and beside them what else clients
and brokers do together is tried, in both directions. With --feature only that is tried. A cell whose parts are
missing is skipped with the reason, and its rows stay; so is one that does not start or answer. In --out lies a folder
for each run, crossing.json, and crossing.svg with every cell by every clause; with the same --out a matrix that was
ended goes on where it was, and what the same code has judged is not run again. Exit code: 0 when no cell that ran
refutes what its profile claims, else 1; 2 when --budget left some; 64 for wrong usage, 70 when a cell failed.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import click

from conformance.parts.places import CHECKOUT
from conformance.parts.processes import exit_on_sigterm
from conformance.reports.saving import check
from conformance.reports.schemas import CROSSING_SCHEMA
from conformance.rounds import ROUNDS
from conformance.targets.driven import Paired
from inorder.evidence import grid, tables
from inorder.evidence.interop.cells import Cell, all_runs, chosen_runs, run_cell
from inorder.evidence.interop.features import (
    NAMES,
    Checked,
    check_direction,
    direction_of,
    directions,
)
from inorder.evidence.interop.page import (
    CELLS,
    DEVIATIONS,
    FEATURES,
    cell_row,
    deviation_rows,
    feature_row,
    picture,
    refresh,
)
from inorder.evidence.options import GridOptions, close, grid_options, in_a_sentence
from specs.errors import (
    EXIT_SUITE,
    EXIT_USAGE,
    InorderError,
    TargetMisbehaved,
    UsageError,
)
from specs.history.clock import host_clock
from specs.scratch import Scratch
from specs.verdicts.verdict import ClauseVerdict

PAGE = CHECKOUT / "docs" / "matrix.md"
CELL_FILES = ".cells"
CODE = ("specs", "reference_impl", "conformance", "drivers/java", "inorder/evidence/interop")
"""What a cell depends on."""


def today() -> str:
    return datetime.fromtimestamp(host_clock().wall_us() / 1e6, UTC).date().isoformat()


def written(page: str, cell: Cell) -> str:
    """The page with the rows of one cell written anew."""
    order = [f"`{run.name}`" for run in all_runs()]
    name = f"`{cell.target}`"
    page = refresh(page, CELLS, order, [name], [cell_row(cell)])
    return refresh(page, DEVIATIONS, order, [name], deviation_rows(cell))


def with_feature(page: str, checked: Checked) -> str:
    """The page with the row of one feature in one direction written anew."""
    order = [f"{name} {direction_of(run)}" for name in NAMES for run in directions()]
    return refresh(
        page,
        FEATURES,
        order,
        [f"{checked.feature} {checked.direction}"],
        [feature_row(checked)],
        keys=2,
    )


def cell_for(run: Paired, seed: int, rounds: int) -> grid.Cell:
    """A broker with a client, and all that its verdict depends on."""
    key = {"target": run.name, "seed": seed, "rounds": rounds, **grid.code_key(*CODE)}
    return grid.Cell("interop", run.name, key)


def features_for(run: Paired, names: Sequence[str]) -> grid.Cell:
    """What else a client and a broker do together, in one direction."""
    key = {"target": run.name, "features": sorted(names), **grid.code_key(*CODE)}
    return grid.Cell("interop", f"features of {run.name}", key)


def folder_of(run: Paired) -> str:
    return run.name.replace(":", "-").replace("/", "-")


@click.command(help=__doc__)
@click.argument("names", nargs=-1, metavar="[CELL]...")
@click.option("--only", type=click.Choice(["cells", "features"]), help="Leave the other out.")
@click.option(
    "--feature",
    "wanted",
    type=click.Choice(NAMES),
    multiple=True,
    help="Only this one; may be repeated.",
)
@click.option(
    "--rounds",
    type=click.IntRange(1),
    default=ROUNDS,
    show_default=True,
    help="Plans for each cell.",
)
@click.option(
    "--page",
    type=click.Path(path_type=Path),
    default=PAGE,
    help="The page whose tables are refreshed.",
)
@grid_options(out="Where to keep the runs; nowhere if not given.")
@in_a_sentence
def main(
    names: tuple[str, ...],
    only: str | None,
    wanted: tuple[str, ...],
    rounds: int,
    page: Path,
    how: GridOptions,
) -> None:
    seed, out = how.seed, how.out

    def say(line: str) -> None:
        click.echo(line, err=True)

    exit_on_sigterm()
    try:
        chosen = chosen_runs(names)
        page.read_text(encoding="utf-8")  # before anything slow
    except (InorderError, OSError) as error:
        say(str(error))
        sys.exit(EXIT_USAGE)
    runs = (
        {cell_for(run, seed, rounds): run for run in chosen}
        if not (only == "features" or wanted)
        else {}
    )
    tried = {
        features_for(run, wanted or NAMES): run
        for run in (directions() if only != "cells" and not names else ())
    }
    cells: list[Cell] = []
    features: list[Checked] = []
    made: list[grid.Done] = []
    failed = False

    def note(checked: Checked) -> None:
        features.append(checked)
        works = "yes" if checked.works else "NO"
        click.echo(f"{checked.feature}, {checked.direction}: {works}, {checked.seen}")
        page.write_text(with_feature(page.read_text(encoding="utf-8"), checked), encoding="utf-8")

    with ExitStack() as stack:
        root = out or Path(stack.enter_context(Scratch("matrix")))

        def folder_for(cell: grid.Cell) -> Path:
            if cell in runs:
                return root / folder_of(runs[cell])
            return root / "features" / folder_of(tried[cell])

        def make(cell: grid.Cell) -> object:
            folder = folder_for(cell)
            if folder.exists():  # of a run that was ended, or of other code
                shutil.rmtree(folder)
            if cell in runs:
                return run_cell(
                    runs[cell], seed=seed, folder=folder, date=today(), rounds=rounds, say=say
                ).to_json()
            found = []
            for checked in check_direction(tried[cell], folder, today(), say, wanted or NAMES):
                note(checked)  # at once: what was tried is kept whatever follows
                found.append(checked.to_json())
            return found

        for done in how.make(
            [*runs, *tried],
            make,
            None if out is None else out / CELL_FILES,
            stands=lambda cell, value: folder_for(cell).is_dir(),
        ):
            made.append(done)
            run = runs.get(done.cell) or tried[done.cell]
            name = run.name if done.cell in runs else direction_of(run)
            if isinstance(done.error, UsageError):  # a part that this machine lacks
                say(f"{name} is skipped: {done.error}")
            elif isinstance(done.error, TargetMisbehaved):  # it must not cost the others
                could = "judged" if done.cell in runs else "tried"
                say(f"{name} could not be {could}: {done.error}")
                failed = True
            elif done.error is not None:
                raise done.error
            elif done.cell in tried:
                for each in done.value if done.resumed else ():
                    note(Checked(**each))
            else:
                cell = Cell.from_json(done.value)
                cells.append(cell)
                counted = ", ".join(
                    f"{cell.counts[each]} {each.value.replace('_', ' ')}" for each in ClauseVerdict
                )
                click.echo(f"{cell.target}: {counted}")
                for deviation in cell.deviations:
                    say(
                        f"  {deviation.clause}: {deviation.seen} ({deviation.known or 'NOT KNOWN'})"
                    )
                # Read at the last moment, and a cell at a time: what was run is kept whatever follows.
                page.write_text(written(page.read_text(encoding="utf-8"), cell), encoding="utf-8")
        if out is not None:
            data = {
                "schema": CROSSING_SCHEMA,
                "cells": [cell.to_json() for cell in cells],
                "features": [checked.to_json() for checked in features],
            }
            check(data, CROSSING_SCHEMA)
            out.mkdir(parents=True, exist_ok=True)
            (out / "crossing.json").write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
            if cells:
                tables.draw(out / "crossing.svg", picture(cells))
    code = close(made, len(runs) + len(tried), wrong=any(cell.news for cell in cells))
    if failed:
        sys.exit(EXIT_SUITE)
    sys.exit(code)


if __name__ == "__main__":
    main()
