"""Within one incarnation, messages are delivered for the first time in the order of their offsets.

An incarnation is one client's work on one lane, from add until drop; who has left the group and begun anew there
begins another one, also where it has the same number and no ADD is recorded. Redeliveries may go back: a suspended
batch comes again, a manual ROLLBACK replays all that was taken. So only an offset that the incarnation has never
delivered counts, and it must lie above all that it has. An incarnation that has delivered when an operator resets the
offset is judged no more: it may go back at any later moment, and a ROLLBACK may replay what it took before. Where the
incarnation's ADD was not seen it may have put back, before its first row, what lies below it: an offset below the
first one seen counts only where that call, in auto mode, acknowledged it. Where nobody says in which mode the call
was, and it succeeded, it counts until a call of the incarnation has put back, or may have, what was taken before.
Says nothing about where the incarnation begins, nor about holes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.intervals import Intervals
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import NO_RESET, ORDERLY
from specs.clauses.rows import (
    acknowledges,
    is_manual,
    may_be_manual,
    may_have_put_back,
    may_put_back,
)
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

    __slots__ = (
        "first",
        "first_offset",
        "highest",
        "highest_offset",
        "offsets",
        "puts_back",
        "root",
        "was_reset",
    )

    def __init__(self, row: Row, offset: int, add: Row | None) -> None:
        """add: where it was seen; else what lies below the first offset may have been put back before."""
        self.root = row if add is None else add
        self.first = self.highest = row
        self.first_offset = self.highest_offset = offset
        self.offsets = Intervals()
        self.offsets.add(offset)
        # May any of its calls have put back what was taken? Was the offset reset since it began?
        self.puts_back, self.was_reset = may_have_put_back(row), False

    def settles(self, row: Row) -> bool:
        """Does one of its calls, as its result says, leave nothing below it to come again?"""
        is_done = acknowledges(row) and not is_manual(row) and not may_put_back(row)
        return is_done and not (self.puts_back and may_be_manual(row))

    def is_known(self, offset: int) -> bool:
        """Is it known that an offset which it did not deliver was not put back before its first row?"""
        return (
            offset >= self.first_offset or self.root is not self.first or self.settles(self.first)
        )


class LaneJudge(Judge):
    """Remembers, for each incarnation, the offsets that it delivered (as ranges) and the row of the highest."""

    __slots__ = ("delivered", "watched")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.delivered: dict[str, _Delivered] = {}
        self.watched: dict[str, Row] = {}  # their ADD was seen, and they have delivered nothing yet

    def begins(self, row: Row) -> Iterable[Finding]:
        name, offset = row.incarnation, row.queue_offset
        if row.kind is Kind.RESET:
            for mine in self.delivered.values():
                mine.was_reset = True
        elif name is not None and row.kind is Kind.ADD:
            self.delivered.pop(name, None)
            self.watched[name] = row
        elif name is not None and offset is not None:
            return self._delivered(name, row, offset)
        return NOTHING

    def _delivered(self, name: str, row: Row, offset: int) -> Iterable[Finding]:
        mine = self.delivered.get(name)
        if mine is None or self._began_anew(mine.root, row):
            add = self.watched.pop(name, None)
            seen = add is not None and not self._began_anew(add, row)
            self.delivered[name] = _Delivered(row, offset, add if seen else None)
            return NOTHING
        if mine.was_reset:
            return NOTHING
        is_new, is_above = offset not in mine.offsets, offset > mine.highest_offset
        mine.offsets.add(offset)
        went_back = is_new and not is_above and mine.is_known(offset)
        self.opportunities += is_above or went_back
        found: Iterable[Finding] = NOTHING
        if went_back:
            root = None if mine.settles(mine.highest) else mine.root
            found = (WentBack(root, mine.highest, row),)
        if is_above:
            mine.highest, mine.highest_offset = row, offset
        mine.puts_back |= may_have_put_back(row)
        return found

    def _began_anew(self, root: Row, row: Row) -> bool:
        """Has the client left the group, and begun anew there, since it began this incarnation?"""
        return self.context.is_of_an_old_life(row.client_id, row.group, root)


judge = LaneJudge


def explain(found: WentBack) -> str:
    first, second = found.highest, found.second
    return (
        f"{who(second)} delivered offset {second.queue_offset} of {second.lane} for the first time at {at(second)}, "
        f"after offset {first.queue_offset}, which it had delivered at {at(first)} in the same incarnation"
    )
