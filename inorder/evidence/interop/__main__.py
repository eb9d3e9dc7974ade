"""`make matrix`: puts every broker to work with every client, and refreshes `docs/matrix.md`.

    python -m inorder.evidence.interop [CELL...] [--only cells|features] [--feature NAME]
        [--seed N] [--rounds N] [--out DIR] [--page FILE]

A cell is named by its target, as reference+java:5.4.0; without a name all are run, and beside them what else clients
and brokers do together is tried, in both directions. With --feature only that is tried. A cell whose parts are missing
is skipped with the reason, and its rows stay; so is one that does not start or answer. In --out lies a folder for each
run, and crossing.json. Exit code: 0 when no cell that ran refutes what its profile claims, else 1; 64 for wrong usage,
70 when a cell failed.
"""

from __future__ import annotations

import json
import sys
import tempfile
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import click

from conformance.drivers.runner import ROUNDS, DrivenRun
from conformance.parts.places import CHECKOUT
from conformance.parts.processes import exit_on_sigterm
from conformance.reports.saving import check
from conformance.reports.schemas import CROSSING_SCHEMA
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
    refresh,
)
from specs.errors import (
    EXIT_REFUTED,
    EXIT_SUITE,
    EXIT_UPHELD,
    EXIT_USAGE,
    InorderError,
    TargetMisbehaved,
    UsageError,
)
from specs.history.clock import host_clock
from specs.verdicts.verdict import ClauseVerdict

PAGE = CHECKOUT / "docs" / "matrix.md"


def today() -> str:
    return datetime.fromtimestamp(host_clock().wall_us() / 1e6, UTC).date().isoformat()


def written(page: str, cell: Cell) -> str:
    """The page with the rows of one cell written anew."""
    order = [f"`{run.target}`" for run in all_runs()]
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


def folder_of(run: DrivenRun) -> str:
    return run.target.replace(":", "-").replace("/", "-")


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
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True)
@click.option(
    "--rounds",
    type=click.IntRange(1),
    default=ROUNDS,
    show_default=True,
    help="Plans for each cell.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="Where to keep the runs; nowhere if not given."
)
@click.option(
    "--page",
    type=click.Path(path_type=Path),
    default=PAGE,
    help="The page whose tables are refreshed.",
)
def main(
    names: tuple[str, ...],
    only: str | None,
    wanted: tuple[str, ...],
    seed: int,
    rounds: int,
    out: Path | None,
    page: Path,
) -> None:
    def say(line: str) -> None:
        click.echo(line, err=True)

    exit_on_sigterm()
    try:
        chosen = chosen_runs(names)
        page.read_text(encoding="utf-8")  # before anything slow
    except (InorderError, OSError) as error:
        say(str(error))
        sys.exit(EXIT_USAGE)
    cells: list[Cell] = []
    features: list[Checked] = []
    failed = False
    with ExitStack() as stack:
        root = out or Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="inorder-matrix-"))
        )
        for run in chosen if only != "features" and not wanted else ():
            try:
                cell = run_cell(
                    run,
                    seed=seed,
                    folder=root / folder_of(run),
                    date=today(),
                    rounds=rounds,
                    say=say,
                )
            except UsageError as error:  # a part that this machine lacks
                say(f"{run.target} is skipped: {error}")
                continue
            except TargetMisbehaved as error:  # one that did not start must not cost the others
                say(f"{run.target} could not be judged: {error}")
                failed = True
                continue
            cells.append(cell)
            counted = ", ".join(
                f"{cell.counts[each]} {each.value.replace('_', ' ')}" for each in ClauseVerdict
            )
            click.echo(f"{cell.target}: {counted}")
            for each in cell.deviations:
                say(f"  {each.clause}: {each.seen} ({each.known or 'NOT KNOWN'})")
            # Read at the last moment, and a cell at a time: what was run is kept whatever follows.
            page.write_text(written(page.read_text(encoding="utf-8"), cell), encoding="utf-8")
        for run in directions() if only != "cells" and not names else ():
            try:
                for checked in check_direction(
                    run, root / "features" / folder_of(run), today(), say, wanted or NAMES
                ):
                    features.append(checked)
                    works = "yes" if checked.works else "NO"
                    click.echo(f"{checked.feature}, {checked.direction}: {works}, {checked.seen}")
                    page.write_text(
                        with_feature(page.read_text(encoding="utf-8"), checked), encoding="utf-8"
                    )
            except UsageError as error:
                say(f"{direction_of(run)} is skipped: {error}")
            except TargetMisbehaved as error:
                say(f"{direction_of(run)} could not be tried: {error}")
                failed = True
        if out is not None:
            data = {
                "schema": CROSSING_SCHEMA,
                "cells": [cell.to_json() for cell in cells],
                "features": [checked.to_json() for checked in features],
            }
            check(data, CROSSING_SCHEMA)
            out.mkdir(parents=True, exist_ok=True)
            (out / "crossing.json").write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
    if failed:
        sys.exit(EXIT_SUITE)
    sys.exit(EXIT_REFUTED if any(cell.news for cell in cells) else EXIT_UPHELD)


if __name__ == "__main__":
    main()
