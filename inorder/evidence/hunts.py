"""Does a hunt find the bugs that scenarios name? `python -m inorder.evidence.hunts`

All of it is simulated. Each bug that a scenario names is hunted by searches that are not told of it and begin with no
corpus: some that go on near to what was new, as `inorder hunt` does, and some that draw every example anew. Both may
make so many examples; the first that breaks a promised clause ends a search. A bug is alone in its cluster, so whatever
clause is refuted is its doing.

The cells are kept in the folder, beside them hunts.json and hunts.md. Exit code: 1 where fewer than four in five of the
bugs were found by searches that learn; 70 when a search failed; 2 when --budget left some; else 0.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import partial
from statistics import median
from typing import Any

import click

from chaos.hunting.cli import AT_ONCE, IN_VIRTUAL_TIME, Quarry, in_virtual_time
from chaos.hunting.draw import choice_of
from chaos.hunting.search import ANEW, Search, hunt
from chaos.scenario import load, names
from conformance.cli.options import print_human
from conformance.cli.people import tell
from conformance.parts.processes import exit_on_sigterm
from conformance.stopping import UNBOUND, Stop
from inorder.evidence import grid, tables
from inorder.evidence.options import GridOptions, close, grid_options, in_a_sentence
from specs.errors import EXIT_SUITE

EXAMPLES, SEEDS = 300, 1
CODE = ("specs", "reference_impl", "conformance", "chaos", "inorder/evidence/hunts.py")
WAYS = {"learning": ANEW, "blind": 1.0}
LEARNING = "learning"
FOUND_LEAST = Fraction(4, 5)


def bugs() -> list[str]:
    """Those that a scenario is there to show, each once."""
    return sorted({bug for name in names() for bug in load(name).shows})


def cell_of(bug: str, way: str, seed: int, examples: int) -> grid.Cell:
    """One search, and all that it depends on."""
    key = {"bug": bug, "way": way, "seed": seed, "examples": examples}
    return grid.Cell("hunts", f"{bug}, {way}, seed {seed}", {**key, **grid.code_key(*CODE)})


def cells_of(wanted: Sequence[str], seeds: Sequence[int], examples: int) -> Iterator[grid.Cell]:
    """Every bug by every way, seed after seed."""
    for seed in seeds:
        for bug in wanted:
            yield from (cell_of(bug, way, seed, examples) for way in WAYS)


def search_for(cell: grid.Cell) -> dict[str, Any]:
    """The search: in which example the bug was found, and by which clauses. None and nobody where it was not."""
    key = cell.key
    quarry = Quarry.of(f"{IN_VIRTUAL_TIME}{key['bug']}", None)
    choice = choice_of(quarry.target.abilities, takes_config=True, at_once=AT_ONCE)
    search = Search()
    hunt(
        search,
        [partial(in_virtual_time, quarry)],
        choice,
        seed=key["seed"],
        most=key["examples"],
        stop=Stop(UNBOUND),
        keep_going=False,
        anew=WAYS[key["way"]],
    )
    return {
        "example": search.examples if search.found else None,
        "clauses": sorted(search.found),
        "states": len(search.seen),
    }


@dataclass(frozen=True, slots=True)
class Line:
    """What the searches for a bug came to. found: by way in how many of its searches, and after how many examples."""

    bug: str
    clauses: tuple[str, ...]
    found: dict[str, tuple[int, int]]
    examples: dict[str, float | None]

    @classmethod
    def of(cls, bug: str, made: Sequence[grid.Done]) -> Line:
        told = {
            way: [
                done.value
                for done in made
                if done.cell.key["way"] == way and done.cell.key["bug"] == bug
            ]
            for way in WAYS
        }
        after = {
            way: [each["example"] for each in values if each["example"] is not None]
            for way, values in told.items()
        }
        return cls(
            bug,
            tuple(
                sorted(
                    {id for values in told.values() for each in values for id in each["clauses"]}
                )
            ),
            {way: (len(after[way]), len(values)) for way, values in told.items()},
            {way: median(numbers) if numbers else None for way, numbers in after.items()},
        )

    @property
    def is_found(self) -> bool:
        """By a search that learns."""
        return self.found[LEARNING][0] > 0

    @property
    def row(self) -> tuple[str, ...]:
        each = (
            text
            for way in WAYS
            for text in (
                "{} of {}".format(*self.found[way]),
                "" if self.examples[way] is None else f"{self.examples[way]:g}",
            )
        )
        return (self.bug, ", ".join(self.clauses), *each)


HEAD = ("bug", "clauses", *(word for way in WAYS for word in (way, "after")))


@click.command(help=__doc__)
@click.option(
    "--bug",
    "wanted",
    multiple=True,
    type=click.Choice(bugs()),
    metavar="M",
    help="Only this one; may be repeated.",
)
@click.option(
    "--examples",
    type=click.IntRange(1),
    default=EXAMPLES,
    show_default=True,
    metavar="N",
    help="So many in a search, at most.",
)
@click.option(
    "--seeds",
    type=click.IntRange(1),
    default=SEEDS,
    show_default=True,
    metavar="N",
    help="Searches of each way, by so many seeds from --seed on.",
)
@grid_options(out="Where to keep it: runs/hunts-SEED if not given.", workers=1)
@in_a_sentence
def main(wanted: tuple[str, ...], examples: int, seeds: int, how: GridOptions) -> None:
    """See the module."""
    exit_on_sigterm()
    root = how.folder("hunts")
    hunted = wanted or bugs()
    cells = list(cells_of(hunted, range(how.seed, how.seed + seeds), examples))
    made: list[grid.Done] = []
    for done in how.make(cells, search_for, root / "cells"):
        made.append(done)
        if done.error is not None:
            tell(f"{done.cell.name}: {done.error}")
    kept = [done for done in made if done.error is None]
    lines = [Line.of(bug, kept) for bug in hunted]
    root.mkdir(parents=True, exist_ok=True)
    told = json.dumps([asdict(line) for line in lines], indent=2)
    (root / "hunts.json").write_text(told + "\n", encoding="utf-8")
    rows = [line.row for line in lines]
    (root / "hunts.md").write_text("\n".join(tables.markdown(HEAD, rows)) + "\n", encoding="utf-8")
    print_human(tables.terminal(HEAD, rows, bad=lambda n: not lines[n].is_found))
    found = sum(line.is_found for line in lines)
    tell(f"{found} of {len(lines)} bugs were found by searches that learn")
    wrong = len(made) == len(cells) and found < FOUND_LEAST * len(lines)
    code = close(made, len(cells), wrong=wrong)
    sys.exit(EXIT_SUITE if len(kept) < len(made) else code)


if __name__ == "__main__":
    main()
