"""Every chaos scenario on every target that can have it: `python -m inorder.evidence.chaos_grid TARGET...`

A cell is one run of a scenario on a target by one seed, judged as `inorder chaos` judges it. The first seed is made on
all targets before the next one begins. The folder keeps the verdict of each run, and all of those that were not
upheld; beside them chaos.md and chaos.json, recovery.md, which says how soon lanes went on, and pictures of both. With
--docs the runs are added to those that the pages docs/chaos-grid.md and docs/recovery.md tell of. The targets are named
as for `inorder conform`; what one can't have is left out, with the reason. Exit code: 1 when a clause was refuted, 70
when a run failed, 2 when --budget left some, else 0; a scenario that did not reach what it must is shown, and no
failure: on a busy machine some fault now and then comes too late.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from xml.etree.ElementTree import Element

import click

from chaos.cli import PROCESS, prepare
from chaos.scenario import names as scenario_names
from conformance.cli.options import print_human
from conformance.cli.people import tell
from conformance.parts.processes import exit_on_sigterm
from conformance.reports import plots
from inorder.evidence import grid, tables
from inorder.evidence.chaos_grid import cells as kept_cells
from inorder.evidence.chaos_grid import pages
from inorder.evidence.chaos_grid.cells import cell_of, is_there
from inorder.evidence.chaos_grid.runs import FAILED, Run
from inorder.evidence.options import GridOptions, close, grid_options, in_a_sentence
from specs.errors import EXIT_SUITE
from specs.verdicts.verdict import RunVerdict

TARGETS = ("reference+tcp", "reference+tcp:sync")
CELL_FILES = "cells"
PAGE, DATA = "chaos.md", "chaos.json"


@click.command(help=__doc__)
@click.argument("targets", nargs=-1, metavar="[TARGET]...")
@click.option(
    "--scenario",
    "wanted",
    multiple=True,
    type=click.Choice(scenario_names()),
    metavar="S",
    help="Only this one; may be repeated.",
)
@click.option(
    "--seeds",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    metavar="N",
    help="How many, from --seed on.",
)
@click.option(
    "--docs",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="Where the two pages are that tell of these runs too.",
)
@grid_options(out="Where to keep the runs: runs/chaos-grid-SEED if not given.")
@in_a_sentence
def main(
    targets: tuple[str, ...],
    wanted: tuple[str, ...],
    seeds: int,
    docs: Path | None,
    how: GridOptions,
) -> None:
    """See the module."""
    exit_on_sigterm()
    root = how.folder("chaos-grid")
    asked = {name: prepare((), name, None, PROCESS) for name in targets or TARGETS}
    for _, left_out in asked.values():
        for scenario, why in left_out.items():
            tell(f"{scenario} is left out: it {why}")
    cells = {
        cell_of(name, scenario, ready.profile.name, seed): ready
        for seed in range(how.seed, how.seed + seeds)
        for scenario in wanted or scenario_names()
        for name, (ready, _) in asked.items()
        if scenario in {each.name for each in ready.scenarios}
    }
    made: list[grid.Done] = []
    try:
        for done in how.make(
            list(cells),
            lambda cell: kept_cells.play(cell, cells[cell], root),
            root / CELL_FILES,
            stands=lambda cell, _: is_there(root, cell),
        ):
            made.append(done)
            if not done.resumed:
                tell(f"{done.cell.name}: {pages.whole([Run.of(done)])}")
    finally:
        for ready, _ in asked.values():
            ready.target.release()
    runs = sorted(map(Run.of, made), key=lambda run: ([*asked].index(run.target), run.place))
    head, rows = pages.by_scenario(runs, pages.whole)
    print_human(
        tables.terminal(head, rows, bad=lambda number: RunVerdict.REFUTED in str(rows[number]))
    )
    write(runs, root)
    if docs is not None:
        pages.refresh(docs, runs)
    code = close(made, len(cells), wrong=any(run.refuted for run in runs))
    sys.exit(EXIT_SUITE if any(run.word == FAILED for run in runs) else code)


def write(runs: Sequence[Run], root: Path) -> None:
    """What all runs came to: as tables, as JSON and as pictures."""
    root.mkdir(parents=True, exist_ok=True)
    head, rows = pages.by_scenario(runs, pages.whole)
    _lines(root / PAGE, tables.markdown(head, rows))
    _lines(
        root / pages.RECOVERY,
        [
            *pages.recovery(runs, pages.after_healing),
            "",
            *pages.recovery(runs, pages.standing_still),
        ],
    )
    (root / DATA).write_text(json.dumps([asdict(run) for run in runs], indent=2) + "\n", "utf-8")
    kept = [run for run in runs if run.word != FAILED]
    if kept:
        tables.draw(root / "chaos.svg", picture(kept))
        tables.draw(root / "recovery.svg", recovery_picture(kept))


def _lines(page: Path, lines: Sequence[str]) -> None:
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


def picture(runs: Sequence[Run]) -> Element:
    """Scenarios by targets: the verdict that says most, of all seeds."""
    cells: dict[tuple[str, str], plots.Cell] = {}
    for run in sorted(runs, key=lambda run: run.word != RunVerdict.UPHELD):
        cells[run.scenario, run.target] = _cell(run)
    title = "Chaos scenarios, target by target"
    rows = sorted({scenario for scenario, _ in cells})
    return plots.heat_map("chaos", title, rows, pages.targets_of(runs), cells)


def _cell(run: Run) -> plots.Cell:
    if run.word not in set(RunVerdict):
        return plots.Cell(plots.Kind.BAD, "!", f"{run.word}: {run.why}")
    return tables.run_cell(RunVerdict(run.word), told=run.why)


def recovery_picture(runs: Sequence[Run]) -> Element:
    """How long lanes stood still, by scenario and by what befell their client or broker: the slowest of each run."""
    groups: dict[str, list[float | None]] = {}
    for run in runs:
        for what, ms in run.stood_still.items():
            groups.setdefault(f"{run.scenario} on {run.target}: {what}", []).append(ms)
    title = "How long a lane stood still after its client or broker was gone"
    return plots.strips("recovery", title, dict(sorted(groups.items())), plots.Axis("ms", log=True))


if __name__ == "__main__":
    main()
