"""`inorder mutants [NAME...]`: is every known bug found, by the clause that it names?"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import click

from conformance.cli import completion, seam
from conformance.cli.options import JSON, print_human, print_json
from conformance.cli.people import Watching, put, tell, watching
from conformance.reports.allure import FOLDER as ALLURE_RESULTS
from conformance.reports.saving import check
from conformance.reports.schemas import MATRIX_SCHEMA
from inorder.evidence import grid
from inorder.evidence.kill_matrix import report
from inorder.evidence.kill_matrix.kill import EXAMPLES, Kill
from inorder.evidence.kill_matrix.matrix import WORKERS, chosen, run_matrix
from inorder.evidence.options import GridOptions, close, grid_options

MARKDOWN = "markdown"
RUNS = "runs"
CELLS = "cells"
SEED = 1


@click.command(name="mutants")
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=completion.mutant)
@click.option(
    "--examples",
    type=click.IntRange(1),
    default=EXAMPLES,
    show_default=True,
    metavar="N",
    help="Generated runs for each mutant, at most.",
)
@grid_options(
    out="Where to keep it: runs/mutants-SEED if not given.",
    seed=SEED,
    workers=WORKERS,
    formats=(MARKDOWN,),
)
def command(
    names: tuple[str, ...],
    examples: int,
    how: GridOptions,
) -> int:
    """Search for every known bug, and draw the kill matrix.

    Each mutant is the correct reference with one real bug, which names the clause that must find it. NAME: only
    these, as `inorder list mutants`. The shrunk runs are kept and can be explained and replayed. A matrix that was
    ended goes on where it was; what the same code has found before by the same seed is not searched again.

    \b
    Exits with 0 when each is killed by the clause that it names, with a minimal witness of at
    most ten events; 1 when one is not; 2 when --budget left some unsearched; 64 wrong
    usage; 70 the suite itself failed.
    """
    wanted = chosen(names)
    out, seed = how.folder("mutants"), how.seed
    make_room(out)
    tell(f"searching for {len(wanted)} mutants, seed {seed}, at most {examples} examples each")
    kept: list[grid.Done] = []

    def told_of(cells: Sequence[grid.Done]) -> None:
        kept.extend(cells)

    with watching() as watch:
        matrix = run_matrix(
            wanted,
            seed,
            examples=examples,
            keep=out / RUNS,
            store=out / CELLS,
            told=told_of,
            done=lambda kill, done, total: _tell(watch, kill, done, total),
            **how.asked,
        )
    report.save(matrix, out)
    if how.form == JSON:
        data = matrix.to_json()
        check(data, MATRIX_SCHEMA)
        print_json(data)
    elif how.form == MARKDOWN:
        put(report.markdown(matrix), end=False)
    else:
        print_human(report.table(matrix.kills))
        print_human(report.closing(matrix))
    code = close(kept, len(wanted))
    tell(f"kept in {out} ({report.JSON_FILE}, {report.MARKDOWN_FILE}, allure-results/, {RUNS}/)")
    only = f" {' '.join(names)}" if names else ""
    tell(f"again: inorder mutants{only} --seed {seed} --examples {examples}")
    return matrix.exit_code or code


def make_room(out: Path) -> None:
    """Take away the reports of an earlier matrix; its cells and their runs stay, for who goes on.

    Raises UsageError for a folder that holds anything else.
    """
    if not grid.is_store(out / CELLS):
        seam.make_room(out, report.JSON_FILE, RUNS)
        return
    for name in (report.JSON_FILE, report.MARKDOWN_FILE, report.PICTURE_FILE):
        (out / name).unlink(missing_ok=True)
    shutil.rmtree(out / ALLURE_RESULTS, ignore_errors=True)


def _tell(watch: Watching, kill: Kill, done: int, total: int) -> None:
    watch.say(f"{kill.name}: {_fate(kill)}")
    watch.progress(done, total, "mutants")


def _fate(kill: Kill) -> str:
    if not kill.killed:
        return f"SURVIVES {kill.examples} runs; {kill.clause} was to kill it"
    words = f"killed by {kill.clause} in run {kill.examples}"
    return f"{words}, by {len(kill.witness)} events" if kill.witness else words
