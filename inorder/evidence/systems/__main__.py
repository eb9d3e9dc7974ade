"""`make systems`: what each system keeps, promise by promise; refreshes `docs/promises.md` and its picture.

    python -m inorder.evidence.systems [NAME...] [--examples N] [--seed N] [--out DIR] [--budget TIME] [--fresh]

A cell is one `inorder conform` of a system of `systems.toml`, under the profile that follows from what runs. What a run
came to is kept in docs/promises.json, so a page shows the last run of each system. Exit code: 0 when all that was
asked for was judged, whatever it came to; 2 when --budget left some, 64 for wrong usage, 70 when a run failed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from conformance.cli import seam
from conformance.cli.people import tell, watching
from conformance.parts.places import CHECKOUT
from conformance.parts.processes import exit_on_sigterm
from conformance.waiting import now_s
from inorder.evidence import grid, tables
from inorder.evidence.interop.__main__ import today
from inorder.evidence.options import GridOptions, close, grid_options, in_a_sentence
from inorder.evidence.systems import table
from inorder.evidence.systems.table import Column
from specs.errors import EXIT_SUITE, UsageError

PAGE = CHECKOUT / "docs" / "promises.md"
DATA, PICTURE = "promises.json", "pictures/promises.svg"
CODE = ("specs", "conformance", "drivers", "inorder/evidence/systems")
"""What a cell depends on."""
CELL_FILES = ".cells"


def cell_of(name: str, how: GridOptions, examples: int | None) -> grid.Cell:
    """A system, and all that its column depends on."""
    key = {"target": table.systems()[name], "seed": how.seed, "examples": examples}
    return grid.Cell("systems", name, {**key, **grid.code_key(*CODE)})


def judge(cell: grid.Cell, folder: Path) -> dict[str, Any]:
    """Run the suite against a system; its column."""
    began_s, key = now_s(), cell.key
    ready = seam.prepare(key["target"], None)
    try:
        with watching(quiet=True) as watch:
            verdict = ready.run(
                seed=key["seed"], examples=key["examples"], floor=None, out=folder, watch=watch
            )
    finally:
        ready.system.release()
    clauses = {each.id: (each.verdict.value, each.opportunities) for each in verdict.clauses}
    return Column(
        name=cell.name,
        target=key["target"],
        profile=ready.profile.name,
        verdict=verdict.verdict.value,
        seed=key["seed"],
        date=today(),
        seconds=round(now_s() - began_s),
        clauses=clauses,
    ).to_json()


def read(data: Path) -> dict[str, Column]:
    """What is kept of each system that the table still has; none where nothing is."""
    if not data.exists():
        return {}
    kept = map(Column.from_json, json.loads(data.read_text(encoding="utf-8")))
    return {each.name: each for each in kept if each.target == table.systems().get(each.name)}


def write(page: Path, kept: Mapping[str, Column]) -> None:
    """The page, its data and its picture, with the columns in the order of the table."""
    columns = [kept[name] for name in table.systems() if name in kept]
    told = [column.to_json() for column in columns]
    (page.parent / DATA).write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    page.write_text(table.written(page.read_text(encoding="utf-8"), columns), encoding="utf-8")
    tables.draw(page.parent / PICTURE, table.picture(columns))


@click.command(help=__doc__)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--examples", type=click.IntRange(1), metavar="N", help="Rounds, as `conform`.")
@click.option(
    "--page",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    default=PAGE,
    help="The page whose table is refreshed, its data and picture beside it.",
)
@grid_options(out="Where to keep the runs: runs/systems-SEED if not given.")
@in_a_sentence
def main(names: Sequence[str], examples: int | None, page: Path, how: GridOptions) -> None:
    """See the module."""
    exit_on_sigterm()
    root = how.folder("systems")
    cells = [cell_of(name, how, examples) for name in chosen(names)]
    made: list[grid.Done] = []
    for done in how.make(
        cells,
        lambda cell: judge(cell, root / cell.stem),
        root / CELL_FILES,
        stands=lambda cell, _: (root / cell.stem).is_dir(),
    ):
        made.append(done)
        if done.error is not None:
            tell(f"{done.cell.name} could not be judged: {done.error}")
            continue
        column = Column.from_json(done.value)
        tell(f"{column.name}: {column.verdict} ({column.seconds} s)")
        write(page, {**read(page.parent / DATA), column.name: column})
    code = close(made, len(cells))
    sys.exit(EXIT_SUITE if any(done.error is not None for done in made) else code)


def chosen(names: Sequence[str]) -> list[str]:
    """The systems whose name or target begins so; all where none is named. UsageError for one that is not there."""
    found = []
    for asked in names:
        these = [
            name
            for name, target in table.systems().items()
            if name.startswith(asked) or target.startswith(asked)
        ]
        if not these:
            raise UsageError(
                f"no system of the table begins with {asked!r}; there are: {'; '.join(table.systems())}"
            )
        found += these
    return [name for name in table.systems() if not names or name in found]


if __name__ == "__main__":
    main()
