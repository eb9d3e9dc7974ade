"""Who asks for the stored offset hears the last acknowledged commit, or one that may have come after it.

Within one broker epoch. Take the acknowledged commit that began last among those that ended before the question:
every commit that was certainly over before it began is overwritten. What remains are its own value and those of all
commits that were, or may have been, applied later and before the answer: each may be applied until its answer, and,
answered or not, within the bound for delays after it was sent (a network may duplicate it). An answer that names
another value, or "nothing stored", is a violation.

A commit is an unconditional put, so the values need not ascend. Nothing is said where a negative value was
committed (it reads as "nothing stored"), where the broker crashed since that commit (see CMT-7) or was paused
since then (a request may have waited in its socket for longer than the bound), nor on a lane whose offset was reset.
Where so many commits come that not all of them can be remembered, only newer ones are judged.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.base import (
    BROKER_LIVES,
    BROKER_NOT_PAUSED,
    MS,
    NO_RESET,
    NOTHING,
    Context,
    Finding,
    Judge,
    at,
    who,
)
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "CMT-9"
TITLE = "a look-up answers the last commit"
STATEMENT = "A look-up of the stored offset answers the last acknowledged commit of the epoch."
PARTY = Party.BROKER
KEY = Key.LANE
PREMISE = (NO_RESET, BROKER_LIVES, BROKER_NOT_PAUSED)
SOURCES = ("docs/sources.md#offsets",)
KINDS = frozenset({Kind.COMMIT, Kind.FETCH_OFFSET, Kind.RESET})
NEEDS = frozenset({Kind.COMMIT, Kind.FETCH_OFFSET})
CONCLUDES_FROM_ABSENCE = True

REMEMBERED_MAX = 1_024


@dataclass(frozen=True, slots=True)
class Forgotten(Finding):
    commit: Row
    answer: Row


class LaneJudge(Judge):
    """Remembers the last acknowledged commit, those that may have been applied after it, and open questions."""

    __slots__ = ("asked", "bound_us", "floor_us", "last", "later", "was_reset")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.bound_us = self.config.delay_bound_ms * MS + context.info.clock_bound_us
        self.last: Row | None = None
        self.later: deque[Row] = deque()  # by their begins; none that may have been applied after `last` is missing
        self.floor_us = -1  # commits that were forgotten may have been applied until then
        self.asked: dict[int, tuple[Row | None, set[int]]] = {}  # by seq: `last` then, and what may be answered
        self.was_reset = False

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.RESET:
            self.was_reset = True
            self.asked.clear()
            self.later.clear()
        elif self.was_reset:
            return NOTHING
        elif row.kind is Kind.FETCH_OFFSET:
            self.asked[row.seq_begin] = (self.last, {each.value or 0 for each in self.later})
        elif row.value is not None:
            self.later.append(row)
            for _, values in self.asked.values():
                values.add(row.value)
            if len(self.later) > REMEMBERED_MAX:
                self.floor_us = max(self.floor_us, self._until_us(self.later.popleft()))
                if self.last is not None and self.last.started_us <= self.floor_us:
                    self.last = None
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        if self.was_reset:
            return NOTHING
        if row.kind is Kind.FETCH_OFFSET:
            return self._answered(row)
        if row.outcome is Outcome.OK and row.value is not None and row.started_us > self.floor_us:
            self._acknowledged(row)
        return NOTHING

    def _acknowledged(self, row: Row) -> None:
        if self.last is None or row.seq_begin > self.last.seq_begin:
            self.last = row
            while self.later and self._until_us(self.later[0]) < row.started_us:
                self.later.popleft()

    def _until_us(self, commit: Row) -> int:
        """Until when the commit may be applied."""
        return max(commit.ended_us or 0, commit.started_us + self.bound_us)

    def _answered(self, row: Row) -> Iterable[Finding]:
        last, values = self.asked.pop(row.seq_begin, (None, frozenset()))
        answer = answered_offset(row)
        if last is None or answer is None or min(values, default=-1) < 0:
            return NOTHING
        context = self.context
        if context.broker_died_since(row.broker, last):
            return NOTHING
        if context.broker_paused_since(row.broker, last.started_us - self.bound_us):
            return NOTHING
        self.opportunities += 1
        return NOTHING if answer in values else (Forgotten(last, row),)


def answered_offset(row: Row) -> int | None:
    """What a look-up was told: the offset, -1 for "nothing stored"; None when that is not known."""
    if row.outcome is Outcome.OK:
        return row.value
    return -1 if row.outcome is Outcome.REFUSED and row.value == -1 else None


judge = LaneJudge


def explain(found: Forgotten) -> str:
    commit, answer = found.commit, found.answer
    told = "that nothing was stored" if answered_offset(answer) == -1 else str(answer.value)
    return (
        f"{who(answer)} asked at {at(answer)} for the offset stored for {answer.lane} and heard {told}, after "
        f"{who(commit)} had committed {commit.value} at {at(commit)} and been answered; nothing came since then"
    )
