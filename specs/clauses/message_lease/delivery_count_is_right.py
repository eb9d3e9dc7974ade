"""Each hand-out of a message says how often the message was handed out before, and that is true.

Judged whenever a message is handed out that was handed out before, or that says so. A count *repeats* where it is not
higher than that of a hand-out that was certainly made before, or is that of any other; what may have ended that lease
with its holder's connection, or with the server, may have taken the hand-out back, and excuses it. It *runs ahead*
where it is higher than all hand-outs that the history shows together with all questions that ended without an answer,
of which each may have been one more. That is judged only where everybody is recorded from the begin on, and nobody asks
besides: a question that is still open may stand for many. And a count is *beyond the limit* where the message had been
handed out as often as it may be. Says nothing about a message that comes again after its acknowledgement was answered,
nor about any once one was answered that may be of any message (`specs.clauses.message_leases`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.intervals import Intervals
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.message_leases import CONNECTED, Names, may_be_cut
from specs.clauses.premises import BROKER_LIVES, NOT_MOVED
from specs.clauses.rows import ended_before
from specs.clauses.words import at, who
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "PML-4"
TITLE = "the delivery count is right and bounded"
STATEMENT = (
    "Each hand-out of a message says how often it was handed out before: never at the first, once more at each "
    "further one; and no message is handed out more often than the limit allows."
)
PARTY = Party.BROKER
KEY = Key.LANE
PREMISE = (BROKER_LIVES, CONNECTED, NOT_MOVED)
SOURCES = ("docs/sources.md#leases-of-messages",)
KINDS = frozenset({Kind.RECEIVE, Kind.ACK})
NEEDS = frozenset({Kind.RECEIVE})
SETTINGS = ("max_reconsume_times",)
SETTLED = frozenset({Outcome.OK, Outcome.REFUSED})
"""How a question ends of which it is known what was handed out."""


@dataclass(frozen=True, slots=True)
class CountRepeats(Finding):
    first: Row
    second: Row


@dataclass(frozen=True, slots=True)
class CountRunsAhead(Finding):
    handed: Row


@dataclass(frozen=True, slots=True)
class BeyondTheLimit(Finding):
    handed: Row


class LaneJudge(Judge):
    """highest: of each message the hand-out with the highest count. seen: how many there were. over: messages whose
    acknowledgement was answered. is_known: of each one so far it was told whose it was. open: questions under way.
    lost: those of which nobody knows what was handed out."""

    __slots__ = ("highest", "is_known", "is_whole", "lost", "names", "open", "over", "seen")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.highest: dict[int, Row] = {}
        self.seen: dict[int, int] = {}
        self.over = Intervals()
        self.names, self.is_known = Names(), True
        self.open = self.lost = 0
        self.is_whole = context.info.closed_world and not context.info.begins_late

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.RECEIVE:
            self.open += 1
        self.names.begins(row)
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        row = self.names.ends(row)
        if row.kind is Kind.ACK:
            if row.outcome is Outcome.OK:
                self._forget(row.queue_offset)
            return NOTHING
        self.open -= 1
        self.lost += row.outcome not in SETTLED
        offset, times = row.queue_offset, row.reconsume_times
        if row.outcome is not Outcome.OK or offset is None or times is None:
            return NOTHING
        if offset in self.over or not self.is_known:
            return NOTHING
        return self._handed_out(row, offset, times)

    def _handed_out(self, row: Row, offset: int, times: int) -> Iterable[Finding]:
        before, seen = self.highest.get(offset), self.seen.get(offset, 0)
        if before is None or times > (before.reconsume_times or 0):
            self.highest[offset] = row
        self.seen[offset] = seen + 1
        if before is None and not times:
            return NOTHING
        self.opportunities += 1
        if before is not None and self._repeats(before, row):
            return (CountRepeats(before, row),)
        if 0 <= self.config.max_reconsume_times < times:
            return (BeyondTheLimit(row),)
        if self.is_whole and not self.open and times > seen + self.lost:
            return (CountRunsAhead(row),)
        return NOTHING

    def _repeats(self, before: Row, row: Row) -> bool:
        higher = (row.reconsume_times or 0) - (before.reconsume_times or 0)
        if higher > 0 or (higher < 0 and not ended_before(before, row)):
            return False
        return not may_be_cut(self.context, before)

    def _forget(self, offset: int | None) -> None:
        """The message at this offset is finished; None: one of them is."""
        if offset is None:
            self.is_known = False
            return
        self.over.add(offset)
        self.highest.pop(offset, None)
        self.seen.pop(offset, None)


judge = LaneJudge


def explain(found: CountRepeats | CountRunsAhead | BeyondTheLimit) -> str:
    last = found.second if isinstance(found, CountRepeats) else found.handed
    said = (
        f"{who(last)} was handed offset {last.queue_offset} of {last.lane} at {at(last)}, and told that it had been "
        f"handed out {last.reconsume_times} times before"
    )
    if isinstance(found, CountRepeats):
        return f"{said}, though {who(found.first)} had been told {found.first.reconsume_times} at {at(found.first)}"
    if isinstance(found, CountRunsAhead):
        return f"{said}, which is more than there were"
    return f"{said}, which is more than the limit allows"
