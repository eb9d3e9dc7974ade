"""What a judge will be able to see in an imported history, clause by clause, before anybody judges it.

Nothing about clauses is listed here. Beside each clause lie histories that break it. They are taken as the log would
have told them: without the kinds of rows that it does not tell, without the columns that it has no values for, with
calls open or a mere moment where it tells no more, and under the same declarations. If one of them is still refuted, a
violation in the log would be too; if it is only possible, it would be possible; if nothing is left to see, the clause
is hardly at stake, and what would have to be given back so that it is, is what is missing. Which clauses are not
recorded, or not judged, is asked of the rules by which they are judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple

from specs.clauses.catalogue import all_clauses
from specs.clauses.certainty import told_of
from specs.clauses.clause import Clause
from specs.clauses.transcript import Expected
from specs.history.columns import COLUMNS, NAMES
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.history.text import parse_history
from specs.profiles import Profile
from specs.verdicts.examine import find_violations
from specs.verdicts.verdict import why_possible
from specs.vocabulary import Kind, Outcome

_FREE = frozenset(column.name for column in COLUMNS if column.required) | {
    "seq_end",
    "ended_us",
    "clock",
}
"""Columns that every imported row has, or that are not its own."""


_ASIDE = frozenset({"process", "message_id", "detail", "code", "wall_us"})


class _Missing(NamedTuple):
    """A column of a kind of rows, or such rows as a whole."""

    kind: Kind
    column: str = ""

    def __str__(self) -> str:
        return f"{self.kind.value}'s {self.column}" if self.column else self.kind.value


class Decided(StrEnum):
    YES = "decided"
    POSSIBLE = "at most possible"
    HARDLY = "hardly at stake"
    NOT_RECORDED = "not recorded"
    NOT_JUDGED = "not judged"


@dataclass(frozen=True, slots=True)
class Shape:
    """How the rows of a kind look: which columns have values, and what is known of begin and end."""

    columns: frozenset[str]
    has_end: bool = True
    has_length: bool = True


@dataclass(frozen=True, slots=True)
class Reach:
    """One clause. kinds, columns, settings: what is missing; of columns each alone would do."""

    id: str
    title: str
    decided: Decided
    why: str = ""
    kinds: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()


def reach(info: RunInfo, profile: Profile, shapes: Mapping[Kind, Shape]) -> list[Reach]:
    """For each clause that the profile promises, what the history can show of it."""
    promised = (
        clause for clause in all_clauses() if profile.claim(clause.id).status != "not_applicable"
    )
    return [_reach(clause, info, shapes) for clause in promised]


def _reach(clause: Clause, info: RunInfo, shapes: Mapping[Kind, Shape]) -> Reach:
    if (unmet := clause.unmet(info)) is not None:
        asked = clause.settings.union(*(premise.settings for premise in clause.premise))
        untold = tuple(sorted(asked & info.config.untold))
        why = f"its premise is not met: {unmet.name}"
        if untold:
            why = f"the map's config does not tell {', '.join(untold)}"
        return Reach(clause.id, clause.title, Decided.NOT_JUDGED, why, settings=untold)
    known = told_of(info) or frozenset()
    if missing := clause.missing(known):
        kinds = tuple(sorted(kind.value for kind in missing))
        return Reach(
            clause.id,
            clause.title,
            Decided.NOT_RECORDED,
            f"the log does not tell {_words(kinds)}",
            kinds=kinds,
        )
    best, examples = _best(clause, info, shapes)
    if best is Decided.YES:
        return Reach(clause.id, clause.title, Decided.YES)
    if best is Decided.POSSIBLE:
        unseen = tuple(sorted(kind.value for kind in clause.excuses_in(info) - known))
        why = "a call whose end the log does not tell may have ended"
        if unseen or clause.absence or info.begins_late or clause.gaps(info):
            why = why_possible(clause, info)
        return Reach(clause.id, clause.title, Decided.POSSIBLE, why, kinds=unseen)
    lacks = _would_do(clause, info, shapes, examples)
    never = [str(each) for each in lacks if not each.column and each.kind in known]
    why = f"the log lacks {', '.join(map(str, lacks))}" if lacks else "the log tells too little"
    if never:
        why = f"it is about {', '.join(never)}, of which none happened"
    columns = tuple(str(each) for each in lacks if each.column)
    kinds = tuple(each.kind.value for each in lacks if not each.column and each.kind not in known)
    return Reach(clause.id, clause.title, Decided.HARDLY, why, kinds, () if never else columns)


def _words(words: Iterable[str]) -> str:
    return ", ".join(word.replace("_", " ") if " " not in word else word for word in words)


Example = tuple[RunInfo, Sequence[Row]]


def _best(
    clause: Clause, info: RunInfo, shapes: Mapping[Kind, Shape]
) -> tuple[Decided, list[Example]]:
    examples = [
        parse_history(example.text, run="example")
        for example in clause.examples
        if example.expected in (Expected.BROKEN, Expected.POSSIBLE)
    ]
    best = Decided.HARDLY
    for theirs, rows in examples:
        found = _judged(clause, _under(theirs, info), [_as_told(row, shapes) for row in rows])
        if found is Decided.YES:
            return found, list(examples)
        if found is Decided.POSSIBLE:
            best = found
    return best, list(examples)


def _under(theirs: RunInfo, ours: RunInfo) -> RunInfo:
    """The example's numbers, and what is known of our log."""
    return replace(
        theirs,
        closed_world=ours.closed_world,
        begins_late=ours.begins_late,
        records=ours.records,
        levels=ours.levels,
        gaps=ours.gaps,
    )


def _as_told(row: Row, shapes: Mapping[Kind, Shape]) -> Row | None:
    shape = shapes.get(row.kind)
    if shape is None:
        return None
    gone: dict[str, Any] = {
        name: None
        for name, value in row._asdict().items()
        if value is not None and name not in _FREE and name not in shape.columns
    }
    row = row._replace(**gone)
    if not shape.has_end:
        return row._replace(seq_end=None, ended_us=None, outcome=Outcome.UNKNOWN)
    if not shape.has_length and row.seq_end is not None:
        return row._replace(seq_end=row.seq_begin, ended_us=row.started_us)
    return row


def _judged(clause: Clause, info: RunInfo, rows: Sequence[Row | None]) -> Decided:
    found = find_violations(clause, [row for row in rows if row is not None], info)
    if any(finding.certain for finding in found):
        return Decided.YES
    return Decided.POSSIBLE if found else Decided.HARDLY


def _would_do(
    clause: Clause, info: RunInfo, shapes: Mapping[Kind, Shape], examples: Sequence[Example]
) -> tuple[_Missing, ...]:
    """What would have to be given back so that a violation can be seen: together, and no more than is needed.

    Of all the examples that break the clause, the one that needs least.
    """
    best: tuple[_Missing, ...] | None = None
    for theirs, rows in examples:
        found = _least(clause, _under(theirs, info), shapes, rows)
        if found is not None and (best is None or len(found) < len(best)):
            best = found
    return best or ()


def _least(
    clause: Clause, info: RunInfo, shapes: Mapping[Kind, Shape], rows: Sequence[Row]
) -> tuple[_Missing, ...] | None:
    needed = _taken(shapes, rows)

    def shows(given: Sequence[_Missing]) -> bool:
        told = [_as_told(row, _with(shapes, given)) for row in rows]
        return _judged(clause, info, told) is not Decided.HARDLY

    if not shows(needed):
        return None
    for each in tuple(needed):
        fewer = [one for one in needed if one != each]
        if shows(fewer):
            needed = fewer
    return tuple(needed)


def _taken(shapes: Mapping[Kind, Shape], rows: Sequence[Row]) -> list[_Missing]:
    """What the log does not tell of these rows; first what is seldom what a clause goes by."""
    taken = {
        _Missing(row.kind, name)
        for row in rows
        if row.kind in shapes
        for name, value in row._asdict().items()
        if value is not None and name not in _FREE and name not in shapes[row.kind].columns
    }
    taken.update(_Missing(row.kind) for row in rows if row.kind not in shapes)
    return sorted(taken, key=lambda each: (not each.column, each.column not in _ASIDE, each))


def _with(shapes: Mapping[Kind, Shape], given: Sequence[_Missing]) -> dict[Kind, Shape]:
    found = dict(shapes)
    for kind, column in given:
        if not column:
            found[kind] = Shape(frozenset(NAMES))
    for kind, column in given:
        if column:
            found[kind] = replace(found[kind], columns=found[kind].columns | {column})
    return found
