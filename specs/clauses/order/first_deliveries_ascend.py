"""Within one incarnation, messages are delivered for the first time in the order of their offsets.

An incarnation is one client's work on one lane, from add until drop. Redeliveries may go back: a suspended batch
comes again, a manual ROLLBACK replays all that was taken. So only an offset that the incarnation has never
delivered counts, and it must lie above all that it has. A reset by an operator clears what is remembered. Where the
incarnation's ADD was not seen it may have put back, before its first row, what lies below it: an offset below the first
one seen counts only where that call, in auto mode, acknowledged it.
Says nothing about where the incarnation begins, nor about holes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.intervals import Intervals
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import NO_RESET, ORDERLY
from specs.clauses.rows import acknowledges, is_manual, may_put_back
from specs.clauses.words import at, who
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Party

ID = "ORD-2"
TITLE = "first deliveries ascend"
STATEMENT = "Within an incarnation, first deliveries come in the order of their offsets."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (ORDERLY, NO_RESET)
SOURCES = ("docs/sources.md#orderly-loop",)
KINDS = frozenset({Kind.DELIVER, Kind.ADD, Kind.RESET})
NEEDS = frozenset({Kind.DELIVER})


@dataclass(frozen=True, slots=True)
class WentBack(Finding):
    """root: shows that what lies below the highest was not put back before; where that row does not itself."""

    root: Row | None
    highest: Row
    second: Row


class _Delivered:
    """What one incarnation has delivered."""

    __slots__ = ("floor", "highest", "highest_offset", "offsets", "root")

    def __init__(self, row: Row, offset: int, add: Row | None) -> None:
        """add: where it was seen; else what lies below the first offset may have been put back before."""
        self.root = row if add is None else add
        self.floor = offset if add is None and not _settles(row) else -1
        self.highest = row
        self.highest_offset = offset
        self.offsets = Intervals()
        self.offsets.add(offset)


class LaneJudge(Judge):
    """Remembers, for each incarnation, the offsets that it delivered (as ranges) and the row of the highest.

    One that had delivered when the offset was reset is judged no more: a ROLLBACK may replay what it took before.
    """

    __slots__ = ("delivered", "void", "watched")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.delivered: dict[str, _Delivered] = {}
        self.void: set[str] = set()
        self.watched: dict[str, Row] = {}  # their ADD was seen, and they have delivered nothing yet

    def begins(self, row: Row) -> Iterable[Finding]:
        name, offset = row.incarnation, row.queue_offset
        if row.kind is Kind.RESET:
            self.void.update(self.delivered)
            self.delivered.clear()
        elif name is not None and row.kind is Kind.ADD:
            self.delivered.pop(name, None)
            self.void.discard(name)
            self.watched[name] = row
        elif name is not None and offset is not None and name not in self.void:
            return self._delivered(name, row, offset)
        return NOTHING

    def _delivered(self, name: str, row: Row, offset: int) -> Iterable[Finding]:
        mine = self.delivered.get(name)
        if mine is None:
            self.delivered[name] = _Delivered(row, offset, self.watched.pop(name, None))
            return NOTHING
        is_new, is_above = offset not in mine.offsets, offset > mine.highest_offset
        mine.offsets.add(offset)
        self.opportunities += is_above or (is_new and offset >= mine.floor)
        if is_above:
            mine.highest, mine.highest_offset = row, offset
        elif is_new and offset >= mine.floor:
            return (WentBack(None if _settles(mine.highest) else mine.root, mine.highest, row),)
        return NOTHING


def _settles(row: Row) -> bool:
    """Does the call, as its result says, leave nothing below it to come again?"""
    return acknowledges(row) and not is_manual(row) and not may_put_back(row)


judge = LaneJudge


def explain(found: WentBack) -> str:
    first, second = found.highest, found.second
    return (
        f"{who(second)} delivered offset {second.queue_offset} of {second.lane} for the first time at {at(second)}, "
        f"after offset {first.queue_offset}, which it had delivered at {at(first)} in the same incarnation"
    )
