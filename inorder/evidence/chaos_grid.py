"""Every chaos scenario on every target that can have it, one table: `python -m inorder.evidence.chaos_grid TARGET...`

A cell is one run of a scenario on a target by the seed, judged as `inorder chaos` judges it; its folder is kept, and
beside them chaos.json, chaos.svg, and recovery.svg, which shows how long lanes stood still. The
targets are named as for `inorder conform`; what one can't have is left out, with the reason. Exit code: 1 when a clause
was refuted, 70 when a run failed, 2 when --budget left some, else 0; a scenario that did not reach what it must is
shown, and no failure: on a busy machine some fault now and then comes too late.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import click

from chaos.cli import PROCESS, Asked, prepare
from chaos.rounds import Try
from chaos.scenario import names as scenario_names
from conformance.cli.options import print_human
from conformance.cli.people import tell
from conformance.parts.processes import exit_on_sigterm
from conformance.reports import plots
from conformance.reports.recovery import recoveries
from conformance.reports.view import opened_in
from inorder.evidence import grid, tables
from inorder.evidence.options import GridOptions, close, grid_options, in_a_sentence
from specs.errors import EXIT_SUITE
from specs.verdicts.verdict import RunVerdict

TARGETS = ("reference+tcp", "reference+tcp:sync")
CODE = ("specs", "reference_impl", "conformance", "chaos", "inorder/evidence/chaos_grid.py")
"""What a run depends on; the scenarios lie in `chaos`."""
CELL_FILES = "cells"
PAGE, DATA = "chaos.md", "chaos.json"
LEFT_OUT = "–"


def cell_of(target: str, scenario: str, profile: str, seed: int) -> grid.Cell:
    """A run of a scenario, and all that its verdict depends on."""
    key = {"target": target, "scenario": scenario, "profile": profile, "seed": seed}
    return grid.Cell("chaos", f"{scenario} on {target}", {**key, **grid.code_key(*CODE)})


def folder_of(root: Path, cell: grid.Cell) -> Path:
    """Where a cell's run is kept."""
    plain = "".join(
        char if char.isalnum() or char in "+.-_" else "-" for char in cell.key["target"]
    )
    return root / plain / str(cell.key["scenario"])


def play(cell: grid.Cell, asked: Asked, root: Path) -> dict[str, Any]:
    """Make a cell; what an earlier run left in its folder goes first."""
    name, seed, folder = cell.key["scenario"], cell.key["seed"], folder_of(root, cell)
    if folder.exists():
        shutil.rmtree(folder)
    scenario = next(each for each in asked.scenarios if each.name == name)
    made = Try(name, 1, seed, folder, asked.go(scenario)(seed, folder))
    history = opened_in(folder)
    stood_still = [] if history is None else recoveries(history.rows())
    return {
        "word": made.word,
        "refuted": made.refuted,
        "missed": made.missed,
        "recovery": [
            {"what": each.what, "lane": str(each.lane), "ms": each.ms} for each in stood_still
        ],
    }


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
@grid_options(out="Where to keep the runs: runs/chaos-grid-SEED if not given.")
@in_a_sentence
def main(targets: tuple[str, ...], wanted: tuple[str, ...], how: GridOptions) -> None:
    """See the module."""
    exit_on_sigterm()
    root = how.folder("chaos-grid")
    asked = {name: prepare((), name, None, PROCESS) for name in targets or TARGETS}
    for _, left_out in asked.values():
        for scenario, why in left_out.items():
            tell(f"{scenario} is left out: it {why}")
    cells = {
        cell_of(name, scenario.name, ready.profile.name, how.seed): ready
        for name, (ready, _) in asked.items()
        for scenario in ready.scenarios
        if not wanted or scenario.name in wanted
    }
    made: list[grid.Done] = []
    try:
        for done in how.make(
            list(cells),
            lambda cell: play(cell, cells[cell], root),
            root / CELL_FILES,
            stands=lambda cell, _: folder_of(root, cell).is_dir(),
        ):
            made.append(done)
            if not done.resumed:
                tell(f"{done.cell.name}: {told(done)}")
    finally:
        for ready, _ in asked.values():
            ready.target.release()
    head, rows = table(made, tuple(asked))
    print_human(
        tables.terminal(head, rows, bad=lambda number: RunVerdict.REFUTED in str(rows[number]))
    )
    root.mkdir(parents=True, exist_ok=True)
    (root / PAGE).write_text("\n".join(tables.markdown(head, rows)) + "\n", encoding="utf-8")
    write_data(made, root)
    wrong = any(done.error is None and done.value["refuted"] for done in made)
    code = close(made, len(cells), wrong=wrong)
    sys.exit(EXIT_SUITE if any(done.error is not None for done in made) else code)


def write_data(made: Sequence[grid.Done], root: Path) -> None:
    """What every cell came to as JSON, and pictures: of the verdicts, and of how long lanes stood still."""
    kept = [done for done in made if done.error is None]
    data = [{"cell": done.cell.name, **done.cell.key, **done.value} for done in kept]
    (root / DATA).write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
    if not kept:
        return
    cells = {
        (done.cell.key["scenario"], done.cell.key["target"]): _cell(done.value) for done in kept
    }
    rows, columns = (list(dict.fromkeys(each[n] for each in cells)) for n in (0, 1))
    title = "Chaos scenarios, target by target"
    tables.draw(root / "chaos.svg", plots.heat_map("chaos", title, sorted(rows), columns, cells))
    tables.draw(root / "recovery.svg", recovery_picture(kept))


def _cell(value: Mapping[str, Any]) -> plots.Cell:
    why = "; ".join(value["refuted"] or value["missed"])
    if value["word"] not in set(RunVerdict):
        return plots.Cell(plots.Kind.BAD, "!", f"{value['word']}: {why}")
    return tables.run_cell(RunVerdict(value["word"]), told=why)


def recovery_picture(kept: Sequence[grid.Done]) -> Element:
    """How long lanes stood still, by scenario and by what befell their client or broker."""
    groups: dict[str, list[float | None]] = {}
    for done in kept:
        for each in done.value["recovery"]:
            groups.setdefault(f"{done.cell.name}: {each['what']}", []).append(each["ms"])
    title = "How long a lane stood still after its client or broker was gone"
    return plots.strips("recovery", title, dict(sorted(groups.items())), plots.Axis("ms", log=True))


def told(done: grid.Done) -> str:
    """What a cell came to, in a few words."""
    if done.error is not None:
        return f"failed: {done.error}"
    value: Mapping[str, Any] = done.value
    why = value["refuted"] or value["missed"]
    return " ".join([value["word"], *([f"({'; '.join(why)})"] if why else [])])


def table(
    made: Sequence[grid.Done], targets: Sequence[str]
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """A row for each scenario, a column for each target."""
    found = {(done.cell.key["scenario"], done.cell.key["target"]): told(done) for done in made}
    scenarios = sorted({scenario for scenario, _ in found})
    rows = [
        (scenario, *(found.get((scenario, target), LEFT_OUT) for target in targets))
        for scenario in scenarios
    ]
    return ("scenario", *targets), rows


if __name__ == "__main__":
    main()
