"""`make systems`: what each system keeps, promise by promise; refreshes `docs/promises.md` and its picture.

    python -m inorder.evidence.systems [NAME...] [--examples N] [--seed N] [--seeds N] [--out DIR] [--budget TIME]
        [--fresh]

A cell is one `inorder conform` of a system of `systems.toml`, under the profile that follows from what runs. What a run
came to is kept in docs/promises.json, so a page shows the last run of each system by each seed. Exit code: 0 when all
that was asked for was judged, whatever it came to; 2 when --budget left some, 64 for wrong usage, 70 when a run failed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
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


def cell_of(name: str, seed: int, examples: int | None) -> grid.Cell:
    """A run of a system, and all that it depends on."""
    key = {"system": name, "target": table.systems()[name], "seed": seed, "examples": examples}
    return grid.Cell("systems", f"{name}, seed {seed}", {**key, **grid.code_key(*CODE)})


def judge(cell: grid.Cell, folder: Path) -> dict[str, Any]:
    """Run the suite against a system; what it came to."""
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
        name=key["system"],
        target=key["target"],
        profile=ready.profile.name,
        verdict=verdict.verdict.value,
        seed=key["seed"],
        date=today(),
        seconds=round(now_s() - began_s),
        clauses=clauses,
    ).to_json()


def read(data: Path) -> list[Column]:
    """What is kept of the runs of systems that the table still has; none where nothing is."""
    if not data.exists():
        return []
    kept = map(Column.from_json, json.loads(data.read_text(encoding="utf-8")))
    return [each for each in kept if each.target == table.systems().get(each.name)]


def columns_of(kept: Sequence[Column]) -> list[Column]:
    """A column for each system that was run, in the order of the table."""
    runs = {name: [run for run in kept if run.name == name] for name in table.systems()}
    return [table.joined(each) for each in runs.values() if each]


def write(page: Path, new: Column) -> None:
    """The page, its data and its picture, with a run that takes the place of that of the same system and seed."""
    data = page.parent / DATA
    kept = [run for run in read(data) if (run.name, run.seed) != (new.name, new.seed)]
    order = list(table.systems())
    kept = sorted([*kept, new], key=lambda run: (order.index(run.name), run.seed))
    lines = ",\n".join(
        json.dumps(run.to_json()) for run in kept
    )  # a run is a line: a diff shows it
    data.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    columns = columns_of(kept)
    page.write_text(table.written(page.read_text(encoding="utf-8"), columns), encoding="utf-8")
    tables.draw(page.parent / PICTURE, table.picture(columns))


@click.command(help=__doc__)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--examples", type=click.IntRange(1), metavar="N", help="Rounds, as `conform`.")
@click.option(
    "--seeds",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    metavar="N",
    help="Runs of each system, by so many seeds from --seed on.",
)
@click.option(
    "--page",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    default=PAGE,
    help="The page whose table is refreshed, its data and picture beside it.",
)
@grid_options(out="Where to keep the runs: runs/systems-SEED if not given.")
@in_a_sentence
def main(
    names: Sequence[str], examples: int | None, seeds: int, page: Path, how: GridOptions
) -> None:
    """See the module."""
    exit_on_sigterm()
    root = how.folder("systems")
    cells = [
        cell_of(name, seed, examples)
        for seed in range(how.seed, how.seed + seeds)
        for name in chosen(names)
    ]
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
        tell(f"{done.cell.name}: {column.verdict} ({column.seconds} s)")
        write(page, column)
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
