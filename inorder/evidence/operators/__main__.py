"""`python -m inorder.evidence.operators --changes 200 --seed 1`: the grid, and what came of it."""

from __future__ import annotations

from functools import partial

import click

from conformance.cli.people import console
from inorder.evidence import grid
from inorder.evidence.operators import report
from inorder.evidence.operators.cells import cells_of, suffer
from inorder.evidence.operators.edits import Change
from inorder.evidence.operators.report import Fate
from inorder.evidence.options import GridOptions, close, grid_options, in_a_sentence
from inorder.evidence.tables import terminal


@click.command()
@click.option("--changes", type=click.IntRange(0), default=100, show_default=True)
@grid_options(out="Where finished changes are kept: runs/operators-SEED if not given.", workers=1)
@in_a_sentence
def main(changes: int, how: GridOptions) -> None:
    """Change operators of facts and clauses, and see who notices.

    Exit code: 1 when too little is noticed, 2 when --budget left some, else 0. report.md has the tables.
    """
    people = console()
    store = how.folder("operators")
    cells = list(cells_of(changes, how.seed))
    made: list[grid.Done] = []
    fates: list[Fate] = []
    for done in how.make(cells, partial(suffer, store=store), store):
        made.append(done)
        if done.error is not None:
            raise done.error
        fate = Fate(Change(**done.cell.key["change"]), done.value)
        fates.append(fate)
        told = ", ".join(f"{way}: {by}" for way, by in fate.noticed.items() if by)
        people.print(f"{fate.change}\n    {told or 'nobody'}", markup=False)
    people.print(terminal(report.HEAD, report.summary(fates), right=report.HEAD[1:]))
    for line in report.unnoticed(fates):
        people.print(line, markup=False)
    (store / "report.md").write_text(report.page(fates), encoding="utf-8")
    raise SystemExit(close(made, len(cells), wrong=report.falls_short(fates), say=people.print))


if __name__ == "__main__":
    main()
