"""`python -m inorder.evidence.operators --judges 100 --kernels 100 --seed 1`: the grid, and what came of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from functools import cache, partial
from itertools import zip_longest
from pathlib import Path
from random import Random

import click

from conformance.cli.people import console
from inorder.evidence import grid
from inorder.evidence.operators import report
from inorder.evidence.operators.edits import Change, Place, again, changed, places
from inorder.evidence.operators.histories import prepared
from inorder.evidence.operators.pools import Side, concerned, left_out, modules, source_of
from inorder.evidence.operators.questions import questions_of
from inorder.evidence.operators.report import Fate
from inorder.evidence.operators.similarity import likenesses
from inorder.evidence.operators.trial import Noticed, noticed
from inorder.evidence.options import GridOptions, close, grid_options, in_a_sentence
from inorder.evidence.tables import terminal
from specs.fingerprint import code_digest

CODE = ("specs", "reference_impl", "conformance", "spark_checkers", "inorder/evidence/operators")
"""What becomes of a change depends on it."""


def sample(side: Side, count: int, seed: int) -> list[Change]:
    """So many places of a side's modules, drawn without putting back, each with one of its changes."""
    draw = Random(f"{side} {seed}")
    known = [(module, place) for module in modules(side) for place in places_of(module)]
    chosen = draw.sample(known, min(count, len(known)))
    return [
        changed(text_of(module), module, place, draw.randrange(place.variants))[0]
        for module, place in chosen
    ]


@cache
def places_of(module: str) -> list[Place]:
    """Where a module can be changed."""
    return places(text_of(module), left_out(module))


def text_of(module: str) -> str:
    return source_of(module).read_text(encoding="utf-8")


def cells_of(side: Side, count: int, seed: int) -> Iterator[grid.Cell]:
    """A cell for each change, with all that its fate depends on."""
    for change in sample(side, count, seed):
        key = {
            "side": side.value,
            "change": asdict(change),
            "seed": seed,
            **grid.code_key(*CODE),
        }
        name = f"{side} {change.module} {change.node} {change.variant}"
        yield grid.Cell("operators", name, key)


def suffer(cell: grid.Cell, store: Path | None = None) -> Noticed:
    """Make a cell: who notices the change. store: where the prepared histories are kept, too."""
    change, side = Change(**cell.key["change"]), Side(cell.key["side"])
    kept = store / f"histories-{code_digest(*CODE)}.pickle" if store is not None else None
    questions = questions_of(side, concerned(change.module), prepared(kept))
    return noticed(change.module, again(text_of(change.module), change), questions)


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
