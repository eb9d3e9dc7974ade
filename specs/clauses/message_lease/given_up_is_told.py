"""What the floor passes and nobody acknowledged was given up, and is told so.

Judged of messages that were handed out as often as they may be, and of which no acknowledgement was begun since: once a
witness has read a floor beyond such a message, and another reading, begun later by more than a timer may be late, finds
the floor beyond it still, somebody has to have told that the message was given up (DEAD_LETTER: a dead letter, an
advisory, whatever shows it). Where either may be of any message of the lane (`specs.clauses.message_leases`), nothing
is said of it any more. A message that the floor passes before its last hand-out is a matter of the floor's own clause.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.intervals import Intervals
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.message_leases import Names
from specs.clauses.premises import BROKER_LIVES, NO_RESET, NOT_REMOVED
from specs.clauses.rows import ended_before, over_us
from specs.clauses.words import MS, at, who
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Level, Outcome, Party

ID = "PML-6"
TITLE = "what is given up is told"
STATEMENT = (
    "A message that was handed out as often as it may be, was not acknowledged, and does not come again is told as "
    "given up."
)
PARTY = Party.BROKER
KEY = Key.LANE
PREMISE = (BROKER_LIVES, NOT_REMOVED, NO_RESET)
SOURCES = ("docs/sources.md#leases-of-messages",)
KINDS = frozenset({Kind.RECEIVE, Kind.ACK, Kind.DEAD_LETTER, Kind.PROGRESS})
LEVELS = frozenset(Level)
NEEDS = frozenset({Kind.RECEIVE, Kind.ACK, Kind.DEAD_LETTER, Kind.PROGRESS})
SETTINGS = ("max_reconsume_times",)
CONCLUDES_FROM_ABSENCE = True


@dataclass(frozen=True, slots=True)
class GivenUpInSilence(Finding):
    """passed: the first reading beyond the message. reading: one that came long after."""

    handed: Row
    passed: Row
    reading: Row


class LaneJudge(Judge):
    """last: hand-outs after which a message may be given up. over: messages of which something was told since.

    is_known: so far it was told of which.

    passed: of each of these messages the first reading beyond it.
    """

    __slots__ = ("bound_us", "is_known", "last", "names", "over", "passed")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.bound_us = self.config.schedule_slack_ms * MS + context.info.clock_bound_us
        self.last: dict[int, Row] = {}
        self.over = Intervals()
        self.names, self.is_known = Names(), True
        self.passed: dict[int, Row] = {}

    def begins(self, row: Row) -> Iterable[Finding]:
        row = self.names.begins(row)
        offset = row.queue_offset
        tells = row.kind in (Kind.ACK, Kind.DEAD_LETTER) and row.outcome is not Outcome.REFUSED
        if tells and offset is None:
            self.is_known = False
            self.last.clear()
        elif tells and offset is not None:
            self.opportunities += row.kind is Kind.DEAD_LETTER and offset in self.last
            self._is_over(offset)
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        row = self.names.ends(row)
        if row.outcome is not Outcome.OK:
            return NOTHING
        if row.kind is Kind.PROGRESS and row.value is not None and self.last:
            return self._judged(row, row.value)
        if row.kind is Kind.RECEIVE and row.queue_offset is not None and self.is_known:
            limit, times = self.config.max_reconsume_times, row.reconsume_times
            if 0 <= limit <= (-1 if times is None else times) and row.queue_offset not in self.over:
                self.last.setdefault(row.queue_offset, row)
        return NOTHING

    def _judged(self, reading: Row, floor: int) -> Iterable[Finding]:
        found = []
        beyond = [each for each in self.last.items() if each[0] < floor]
        for offset, handed in sorted(beyond, key=lambda each: each[0]):
            passed = self.passed.get(offset)
            if passed is None:
                if ended_before(handed, reading):
                    self.passed[offset] = reading
            elif reading.started_us >= over_us(passed) + self.bound_us:
                self._is_over(offset)
                if not self._is_excused(handed):
                    self.opportunities += 1
                    found.append(GivenUpInSilence(handed, passed, reading))
        return found

    def _is_over(self, offset: int) -> None:
        self.over.add(offset)
        self.last.pop(offset, None)
        self.passed.pop(offset, None)

    def _is_excused(self, handed: Row) -> bool:
        context = self.context
        return (
            context.broker_died_since(handed.broker, handed)
            or (handed.queue_offset or 0) < context.kept_from.get(handed.queue, 0)
            or handed.lane in context.resets
        )


judge = LaneJudge


def explain(found: GivenUpInSilence) -> str:
    handed, passed, reading = found.handed, found.passed, found.reading
    return (
        f"at {at(passed)} the store had {passed.value} for {handed.lane}, beyond offset {handed.queue_offset}, which "
        f"{who(handed)} had been handed for the last time at {at(handed)} and which nobody acknowledged; by "
        f"{at(reading)} nobody had told that it was given up"
    )
