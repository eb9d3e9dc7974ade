"""`python -m inorder.evidence.operators --judges 100 --kernels 100 --seed 1`: the grid, and what came of it."""

from __future__ import annotations

from functools import partial
from itertools import zip_longest

import click

from conformance.cli.people import console
from inorder.evidence import grid
from inorder.evidence.operators import report
from inorder.evidence.operators.cells import cells_of, suffer
from inorder.evidence.operators.edits import Change
from inorder.evidence.operators.pools import Side
from inorder.evidence.operators.report import Fate
from inorder.evidence.operators.similarity import likenesses
from inorder.evidence.options import GridOptions, close, grid_options, in_a_sentence
from inorder.evidence.tables import terminal


@click.command()
@click.option("--judges", type=click.IntRange(0), default=100, show_default=True)
@click.option("--kernels", type=click.IntRange(0), default=100, show_default=True)
@grid_options(out="Where finished changes are kept: runs/operators-SEED if not given.", workers=1)
@in_a_sentence
def main(judges: int, kernels: int, how: GridOptions) -> None:
    """Change operators of judges and kernels, and see who notices.

    Exit code: 1 when too little is noticed, 2 when --budget left some, else 0. report.md has the tables.
    """
    people = console()
    store = how.folder("operators")
    counts = {Side.JUDGES: judges, Side.KERNELS: kernels}
    of = [cells_of(side, counts[side], how.seed) for side in Side]
    cells = [cell for pair in zip_longest(*of) for cell in pair if cell is not None]
    made: list[grid.Done] = []
    fates: list[Fate] = []
    for done in how.make(cells, partial(suffer, store=store), store):
        made.append(done)
        if done.error is not None:
            raise done.error
        fate = Fate(Side(done.cell.key["side"]), Change(**done.cell.key["change"]), done.value)
        fates.append(fate)
        told = ", ".join(f"{way}: {by}" for way, by in fate.noticed.items() if by)
        people.print(f"{fate.change}\n    {told or 'nobody'}", markup=False)
    people.print(terminal(report.HEAD, report.summary(fates), right=report.HEAD[1:]))
    for line in report.unnoticed(fates):
        people.print(line, markup=False)
    (store / "report.md").write_text(report.page(fates, likenesses()), encoding="utf-8")
    raise SystemExit(close(made, len(cells), wrong=report.falls_short(fates), say=people.print))


if __name__ == "__main__":
    main()
