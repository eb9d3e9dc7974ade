"""Below the floor that a store tells of a group, every message that was handed out is finished.

The floor is what a witness reads (PROGRESS). A message may be finished from the moment on at which somebody begins to
acknowledge it, under whatever lease, or it is given up; and a message that was handed out as often as it may be may
have been given up without a word. Only one that had certainly been handed out before the witness asked is looked at. Of
commits of offsets the same is said by a clause of its own: here the store speaks for messages that are acknowledged one
by one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.intervals import Intervals
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import NOT_MOVED, NOT_REMOVED
from specs.clauses.rows import ended_before
from specs.clauses.words import at, who
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Level, Outcome, Party

ID = "FLR-1"
TITLE = "nothing unfinished below the floor"
STATEMENT = "Below the floor that the store tells of a group, every message that was handed out is finished."
PARTY = Party.BROKER
KEY = Key.LANE
PREMISE = (NOT_REMOVED, NOT_MOVED)
SOURCES = ("docs/sources.md#acknowledgement-floor",)
KINDS = frozenset({Kind.RECEIVE, Kind.ACK, Kind.DEAD_LETTER, Kind.PROGRESS})
LEVELS = frozenset(Level)
NEEDS = frozenset({Kind.RECEIVE, Kind.ACK, Kind.PROGRESS})
SETTINGS = ("max_reconsume_times",)
CONCLUDES_FROM_ABSENCE = True


@dataclass(frozen=True, slots=True)
class Unfinished(Finding):
    handed: Row
    reading: Row


class LaneJudge(Judge):
    """open: the first hand-out of each message that is certainly not finished. over: offsets that may be."""

    __slots__ = ("open", "over")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.open: dict[int, Row] = {}
        self.over = Intervals()

    def begins(self, row: Row) -> Iterable[Finding]:
        finishes = row.kind is Kind.DEAD_LETTER or row.kind is Kind.ACK
        if finishes and row.outcome is not Outcome.REFUSED and row.queue_offset is not None:
            self._may_be_over(row.queue_offset)
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.outcome is not Outcome.OK:
            return NOTHING
        if row.kind is Kind.PROGRESS and row.value is not None:
            return self._judged(row, row.value)
        if row.kind is Kind.RECEIVE and row.queue_offset is not None:
            limit = self.config.max_reconsume_times
            if limit >= 0 and (row.reconsume_times is None or row.reconsume_times >= limit):
                self._may_be_over(row.queue_offset)
            elif row.queue_offset not in self.over:
                self.open.setdefault(row.queue_offset, row)
        return NOTHING

    def _may_be_over(self, offset: int) -> None:
        self.over.add(offset)
        self.open.pop(offset, None)

    def _judged(self, reading: Row, floor: int) -> Iterable[Finding]:
        if not self.open:
            return NOTHING
        self.opportunities += 1
        kept_from = self.context.kept_from.get(reading.queue, 0)
        passed = [
            offset
            for offset, row in self.open.items()
            if kept_from <= offset < floor and ended_before(row, reading)
        ]
        found = [Unfinished(self.open[offset], reading) for offset in sorted(passed)]
        for offset in passed:  # each is told once
            self._may_be_over(offset)
        return found


judge = LaneJudge


def explain(found: Unfinished) -> str:
    handed, reading = found.handed, found.reading
    return (
        f"at {at(reading)} the store had {reading.value} for {reading.lane}, beyond offset {handed.queue_offset}, "
        f"which {who(handed)} was handed at {at(handed)} and which nobody had acknowledged by then"
    )
