"""Does a hunt find the bugs that scenarios name? `python -m inorder.evidence.hunts`

All of it is simulated. Each bug that a scenario names is hunted by searches that are not told of it, nor of the
configuration that it needs, and begin with no corpus: some that go on near to what was new, as `inorder hunt` does, and
some that draw every example anew. Each may work for so many minutes of one process's time, so that what else the
machine does is not counted; the first example that breaks a promised clause ends a search.

A bug is alone in its cluster, and it counts as found only if the same example, by the same seed, breaks nothing on the
correct cluster: then whatever was refuted is the bug's doing. The correct cluster is hunted beside them.

The seed is drawn and printed; `--seed` says it again, to go on. The cells are kept in the folder, beside them
hunts.json and hunts.md. Exit code: 1 where fewer than four in five of the bugs were found by searches that learn, or
anything was found on the correct cluster; 70 when a search failed; 2 when --budget left some; else 0.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import partial
from random import Random
from typing import Any

import click

from chaos.hunting.cli import AT_ONCE, IN_VIRTUAL_TIME, Quarry, in_virtual_time
from chaos.hunting.draw import choice_of
from chaos.hunting.find import Twin
from chaos.hunting.search import ANEW, Example, Search, hunt
from chaos.scenario import load, names
from conformance.cli.options import print_human
from conformance.cli.people import tell
from conformance.parts.processes import exit_on_sigterm
from conformance.replay import REFERENCE
from conformance.stopping import Bounds, Stop
from inorder.evidence import grid, tables
from inorder.evidence.options import GridOptions, close, grid_options, in_a_sentence
from reference_impl.mutants import load as load_mutant
from specs.clauses.catalogue import by_id
from specs.errors import EXIT_SUITE

MINUTES, SEEDS = 5.0, 1
CODE = ("specs", "reference_impl", "conformance", "chaos", "inorder/evidence/hunts.py")
WAYS = {"learning": ANEW, "blind": 1.0}
LEARNING = "learning"
FOUND_LEAST = Fraction(4, 5)


class OwnTime(Stop):
    """Over after so many seconds of this process's own time."""

    def __init__(self, bounds: Bounds) -> None:
        super().__init__(bounds)
        self._used_s = _used_s()

    @property
    def passed_s(self) -> float:
        return _used_s() - self._used_s


def _used_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def bugs() -> list[str]:
    """Those that a scenario is there to show, each once."""
    return sorted({bug for name in names() for bug in load(name).shows})


def cell_of(bug: str, way: str, seed: int, minutes: float) -> grid.Cell:
    """One search, and all that it depends on. bug: its name, or REFERENCE for the correct cluster."""
    key = {"bug": bug, "way": way, "seed": seed, "minutes": minutes}
    return grid.Cell("hunts", f"{bug}, {way}, seed {seed}", {**key, **grid.code_key(*CODE)})


def cells_of(wanted: Sequence[str], seeds: Sequence[int], minutes: float) -> Iterator[grid.Cell]:
    """Seed after seed: every bug by searches that learn, then by blind ones, and last the correct cluster."""
    for seed in seeds:
        for way in WAYS:
            yield from (cell_of(bug, way, seed, minutes) for bug in wanted)
        yield cell_of(REFERENCE, LEARNING, seed, minutes)


def search_for(cell: grid.Cell) -> dict[str, Any]:
    """A search: in which example the bug was found, and by which clauses. None and nobody where it was not.

    seed: drawn for each search of its own. correct: what the same example breaks on the correct cluster.
    """
    key = cell.key
    quarry = quarry_of(key["bug"])
    choice = choice_of(quarry.target.abilities, takes_config=True, at_once=AT_ONCE)
    search, stop = Search(), OwnTime(Bounds(key["minutes"] * 60))
    seed = Random(f"{key['bug']} {key['way']} {key['seed']}").randrange(2**31)
    hunt(
        search,
        [partial(in_virtual_time, quarry)],
        choice,
        seed=seed,
        most=None,
        stop=stop,
        keep_going=False,
        anew=WAYS[key["way"]],
    )
    found = next(iter(search.found.values()), None)
    return {
        "seed": seed,
        "example": None if found is None else found.number,
        "examples": search.examples,
        "seconds": round(stop.passed_s, 1),
        "clauses": sorted(search.found),
        "correct": [] if found is None else list(on_the_correct_cluster(quarry, found)),
        "states": len(search.seen),
    }


def quarry_of(bug: str) -> Quarry:
    """The bug alone in its cluster. What it needs of the configuration is not told: it has to be drawn."""
    if bug == REFERENCE:
        return Quarry.of(REFERENCE, None)
    quarry = Quarry.of(f"{IN_VIRTUAL_TIME}{bug}", None)
    return replace(quarry, twin=Twin(replace(load_mutant(bug), config={}), quarry.target.suited))


def on_the_correct_cluster(quarry: Quarry, example: Example) -> tuple[str, ...]:
    """What the same example breaks there, which nothing may."""
    correct = replace(quarry, twin=Twin(None, quarry.target.suited))
    return in_virtual_time(correct, example.number, example.scenario, example.seed).refuted


def own_clauses(bug: str) -> frozenset[str]:
    """The clause that the bug names, those that it refines, and those that refine it."""
    own = load_mutant(bug).killed_by
    above = frozenset(by_id()[own].refines) if own in by_id() else frozenset()
    return above | {own} | {clause.id for clause in by_id().values() if own in clause.refines}


@dataclass(frozen=True, slots=True)
class Line:
    """What the searches for a bug came to. found: by way in how many of its searches.

    after: in which example and after how many seconds each search found it, by way. own: was it found by its own
    clause, or a near one? correct: what its examples break on the correct cluster.
    """

    bug: str
    clauses: tuple[str, ...]
    found: dict[str, tuple[int, int]]
    after: dict[str, list[tuple[int, float]]]
    own: bool
    correct: tuple[str, ...]

    @classmethod
    def of(cls, bug: str, made: Sequence[grid.Done]) -> Line:
        mine = [done for done in made if done.cell.key["bug"] == bug]
        told = {way: [done.value for done in mine if done.cell.key["way"] == way] for way in WAYS}
        all_told = [each for values in told.values() for each in values]
        clauses = {id for each in all_told for id in each["clauses"]}
        found = {
            way: [each for each in values if each["example"] is not None and not each["correct"]]
            for way, values in told.items()
        }
        return cls(
            bug,
            tuple(sorted(clauses)),
            {way: (len(found[way]), len(values)) for way, values in told.items()},
            {
                way: [(each["example"], each["seconds"]) for each in values]
                for way, values in found.items()
            },
            bug != REFERENCE and bool(clauses & own_clauses(bug)),
            tuple(sorted({id for each in all_told for id in each["correct"]})),
        )

    @property
    def is_found(self) -> bool:
        """By a search that learns."""
        return self.found[LEARNING][0] > 0

    @property
    def row(self) -> tuple[str, ...]:
        each = (text for way in WAYS for text in (self._share(way), self._after(way)))
        return (self.bug, ", ".join(self.clauses), "yes" if self.own else "", *each)

    def _share(self, way: str) -> str:
        found, of = self.found[way]
        return f"{found} of {of}" if of else "not made"

    def _after(self, way: str) -> str:
        return ", ".join(f"{example} ({seconds:.0f} s)" for example, seconds in self.after[way])


HEAD = ("bug", "clauses", "its own", *(word for way in WAYS for word in (way, "after")))


def _told(lines: Sequence[Line]) -> Iterator[str]:
    """Of each way how many bugs it found, and by which the table is to be read."""
    for way in WAYS:
        tried = [line for line in lines if line.found[way][1]]
        found = sum(line.found[way][0] > 0 for line in tried)
        share = f", {found / len(tried):.0%}" if tried else ""
        yield f"{found} of {len(tried)} bugs were found by searches of the way {way}{share}"
    own = sum(line.own for line in lines)
    yield f"of {own} bugs the clause that they name, or one near to it, was refuted"


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
    "--minutes",
    type=click.FloatRange(0, min_open=True),
    default=MINUTES,
    show_default=True,
    metavar="N",
    help="So long a search may work, at most; of one process's own time.",
)
@click.option(
    "--seeds",
    type=click.IntRange(1),
    default=SEEDS,
    show_default=True,
    metavar="N",
    help="Searches of each way, by so many seeds from --seed on.",
)
@grid_options(
    out="Where to keep it: runs/hunts-SEED if not given.", seed=None, workers=1, draws_seed=True
)
@in_a_sentence
def main(wanted: tuple[str, ...], minutes: float, seeds: int, how: GridOptions) -> None:
    """See the module."""
    exit_on_sigterm()
    root = how.folder("hunts")
    hunted = wanted or bugs()
    tell(f"seed {how.seed}; the same again, to go on: --seed {how.seed} --out {root}")
    cells = list(cells_of(hunted, range(how.seed, how.seed + seeds), minutes))
    made: list[grid.Done] = []
    for done in how.make(cells, search_for, root / "cells"):
        made.append(done)
        tell(f"{done.cell.name}: {_sentence(done)}")
    kept = [done for done in made if done.error is None]
    lines = [Line.of(bug, kept) for bug in hunted]
    correct = Line.of(REFERENCE, kept)
    root.mkdir(parents=True, exist_ok=True)
    told = json.dumps([asdict(line) for line in (*lines, correct)], indent=2)
    (root / "hunts.json").write_text(told + "\n", encoding="utf-8")
    rows = [line.row for line in (*lines, correct)]
    sentences = list(_told(lines))
    text = [*(f"- {sentence}" for sentence in sentences), "", *tables.markdown(HEAD, rows)]
    (root / "hunts.md").write_text("\n".join(text) + "\n", encoding="utf-8")
    print_human(tables.terminal(HEAD, rows, bad=lambda n: n < len(lines) and not lines[n].is_found))
    for sentence in sentences:
        tell(sentence)
    all_made = len(made) == len(cells)
    too_few = all_made and sum(line.is_found for line in lines) < FOUND_LEAST * len(lines)
    alarms = any(line.correct for line in (*lines, correct))
    code = close(made, len(cells), wrong=too_few or alarms)
    sys.exit(EXIT_SUITE if len(kept) < len(made) else code)


def _sentence(done: grid.Done) -> str:
    if done.error is not None:
        return str(done.error)
    value = done.value
    spent = f"{value['examples']} examples, {value['seconds']:.0f} s"
    if value["example"] is None:
        return f"nothing, {spent}"
    also = f"; BROKEN TOO on the correct cluster: {value['correct']}" if value["correct"] else ""
    return f"{', '.join(value['clauses'])}, {spent}{also}"


if __name__ == "__main__":
    main()
