"""The table of `docs/promises.md`, and its picture, from what was kept of each system."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib import resources
from typing import Any
from xml.etree.ElementTree import Element

from conformance.reports import plots
from conformance.reports.html import SIGNS
from inorder.evidence import tables
from specs.clauses.catalogue import catalogue
from specs.verdicts.verdict import ClauseVerdict

MARKS = (
    "<!-- table promises: written by `make systems` -->",
    "<!-- end of table promises -->",
)
FILE = "systems.toml"


@dataclass(frozen=True, slots=True)
class Promise:
    """A row. clauses: ids, or a family for all of its clauses that no other row names."""

    words: str
    clauses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """What a run of a system came to. clauses: by id the verdict and how often it was at stake."""

    name: str
    target: str
    profile: str
    verdict: str
    seed: int
    date: str
    seconds: int
    clauses: Mapping[str, tuple[str, int]] = field(hash=False)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "clauses": {id: list(each) for id, each in self.clauses.items()}}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Column:
        told = {id: (str(verdict), int(often)) for id, (verdict, often) in data["clauses"].items()}
        return cls(**{**data, "clauses": told})


def joined(runs: Sequence[Column]) -> Column:
    """A system's runs as one column: of each clause the worst that a run says, and what upheld it outweighs silence.

    Its verdict says how many of the runs came to what; its seconds are the longest run's, its date the last one's.
    """
    often = Counter(run.verdict for run in runs)
    by_id: dict[str, list[tuple[str, int]]] = {}
    for run in runs:
        for id, each in run.clauses.items():
            by_id.setdefault(id, []).append(each)
    return replace(
        max(runs, key=lambda run: run.date),
        verdict=", ".join(f"{verdict} {n} of {len(runs)}" for verdict, n in often.most_common()),
        seconds=max(run.seconds for run in runs),
        clauses={
            id: (
                min((verdict for verdict, _ in said), key=_by_weight),
                sum(opportunities for _, opportunities in said),
            )
            for id, said in by_id.items()
        },
    )


@dataclass(frozen=True, slots=True)
class Told:
    """A cell: which of the promise's clauses came to what."""

    by: Mapping[ClauseVerdict, tuple[str, ...]] = field(hash=False)

    @property
    def worst(self) -> ClauseVerdict:
        """What is shown of it. A promise is kept where all that was claimed of it was upheld."""
        return next(each for each in _WORST_FIRST if self.by.get(each))

    @property
    def text(self) -> str:
        """The sign, and for what is not kept the clauses."""
        worst = self.worst
        named = self.by[worst] if worst in _NAMED else ()
        return " ".join([SIGNS[worst], *named])


_NAMED = frozenset({ClauseVerdict.REFUTED, ClauseVerdict.POSSIBLE, ClauseVerdict.ALLOWED})
_SILENT = (ClauseVerdict.NOT_EXERCISED, ClauseVerdict.NOT_RECORDED, ClauseVerdict.NOT_CLAIMED)
_WORST_FIRST = (
    ClauseVerdict.REFUTED,
    ClauseVerdict.POSSIBLE,
    ClauseVerdict.ALLOWED,
    ClauseVerdict.UPHELD,
    *_SILENT,
)


def _by_weight(verdict: str) -> int:
    return _WORST_FIRST.index(ClauseVerdict(verdict))


@cache
def promises() -> tuple[Promise, ...]:
    """The rows, in the order of the file."""
    return tuple(
        Promise(each["words"], _spelled(each["clauses"])) for each in _file().get("promise", ())
    )


@cache
def systems() -> Mapping[str, str]:
    """The columns: what people call a system, and its target."""
    return {each["name"]: each["target"] for each in _file()["system"]}


def cell(promise: Promise, column: Column) -> Told:
    """What a system came to in a promise."""
    by: dict[ClauseVerdict, list[str]] = {}
    for id in promise.clauses:
        verdict, _ = column.clauses.get(id, (ClauseVerdict.NOT_CLAIMED.value, 0))
        by.setdefault(ClauseVerdict(verdict), []).append(id)
    return Told({verdict: tuple(ids) for verdict, ids in by.items()})


def written(page: str, columns: Sequence[Column]) -> str:
    """The page with its table written anew from all columns there are."""
    before, _, rest = page.partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    head = ["promise", *(f"{number}" for number in range(1, len(columns) + 1))]
    rows = [
        [promise.words, *(cell(promise, column).text for column in columns)]
        for promise in promises()
    ]
    names = [
        (
            str(number),
            column.name,
            f"`{column.target}`",
            f"`{column.profile}`",
            column.verdict,
            str(sum(verdict == ClauseVerdict.UPHELD for verdict, _ in column.clauses.values())),
            str(column.seconds),
            column.date,
        )
        for number, column in enumerate(columns, start=1)
    ]
    of = ("", "system", "target", "profile", "verdict", "clauses upheld", "seconds", "last run")
    lines = [
        *tables.markdown(of, names, right=("", "clauses upheld", "seconds")),
        "",
        *tables.markdown(head, rows),
    ]
    return f"{before}{MARKS[0]}\n\n" + "\n".join(lines) + f"\n\n{MARKS[1]}{after}"


def picture(columns: Sequence[Column]) -> Element:
    """The same as a heat map."""
    cells = {}
    for promise in promises():
        for column in columns:
            told = cell(promise, column)
            words = {verdict: ", ".join(ids) for verdict, ids in told.by.items()}
            said = "; ".join(
                f"{verdict.value.replace('_', ' ')}: {words[verdict]}" for verdict in told.by
            )
            drawn = tables.clause_cell(told.worst)
            cells[promise.words, column.name] = plots.Cell(drawn.kind, drawn.text, said)
    there = {cell(promise, column).worst for promise in promises() for column in columns}
    legend = [
        (tables.clause_cell(verdict), verdict.value.replace("_", " "))
        for verdict in ClauseVerdict
        if verdict in there
    ]
    return plots.heat_map(
        "promises",
        "Promises, system by system",
        [promise.words for promise in promises()],
        [column.name for column in columns],
        cells,
        legend=legend,
        narrow=True,
    )


def _file() -> dict[str, Any]:
    return tomllib.loads(resources.files(__package__).joinpath(FILE).read_text(encoding="utf-8"))


def _spelled(names: Sequence[str]) -> tuple[str, ...]:
    """Ids as they are; a family as those of its clauses that no row names."""
    named = {name for each in _file()["promise"] for name in each["clauses"]}
    known = [clause.id for clause in catalogue()]
    return tuple(
        id
        for name in names
        for id in ([name] if name in known else _family(name, known))
        if id == name or id not in named
    )


def _family(name: str, known: Sequence[str]) -> list[str]:
    return [id for id in known if id.split("-")[0] == name]
