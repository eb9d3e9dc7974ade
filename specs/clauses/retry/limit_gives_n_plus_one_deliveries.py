"""With a limit of N retries a message is delivered N + 1 times in an incarnation, and is then given up.

(a) After a delivery that carried N (or more) and was suspended, the message does not come again, unless its dead
letter failed. (b) No message is given up whose last delivery carried less than N. N = 0 means one delivery; no
limit (-1) says nothing. The premises are those of RTY-3.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.base import (
    BATCH_OF_ONE,
    DEAD_LETTER_SENT,
    NO_ROLLBACK,
    NOTHING,
    ORDERLY,
    Finding,
    at,
    ended_before,
    who,
)
from specs.clauses.retry.counting import COUNTING_KINDS, Counter, CountingJudge
from specs.history.row import Row
from specs.vocabulary import LISTENER_SUSPENDS, Key, Kind, Party

ID = "RTY-5"
TITLE = "a limit of N gives N + 1 deliveries"
STATEMENT = "With a limit of N retries, a message that never succeeds is delivered N + 1 times and then given up."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (ORDERLY, BATCH_OF_ONE, NO_ROLLBACK, DEAD_LETTER_SENT)
SOURCES = ("docs/sources.md#orderly-loop", "docs/sources.md#dead-letters")
KINDS = COUNTING_KINDS
NEEDS = frozenset({Kind.DELIVER})


@dataclass(frozen=True, slots=True)
class LimitMissed(Finding):
    """next: the delivery that came too much, or the dead letter that came too soon."""

    last: Row
    next: Row
    limit: int


class LaneJudge(CountingJudge):
    """Compares what follows a delivery with the counter that it carried."""

    __slots__ = ()

    def delivered(self, counter: Counter, row: Row) -> Iterable[Finding]:
        last, limit = counter.last, self.config.max_reconsume_times
        if last is None or last.queue_offset != row.queue_offset or not self._exhausted(last):
            return NOTHING
        if counter.dead_letter_failed or not ended_before(last, row):
            return NOTHING
        return (LimitMissed(last, row, limit),)

    def given_up(self, counter: Counter, row: Row) -> Iterable[Finding]:
        last, limit = counter.last, self.config.max_reconsume_times
        if limit < 0 or last is None or last.reconsume_times is None or counter.dead_letter_failed:
            return NOTHING
        self.opportunities += 1
        return (LimitMissed(last, row, limit),) if last.reconsume_times < limit else NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.DELIVER and self.config.batch == 1 and self._exhausted(row):
            self.opportunities += 1
        return CountingJudge.ends(self, row)

    def _exhausted(self, row: Row) -> bool:
        """Was the message delivered for the last time allowed, in vain?"""
        limit = self.config.max_reconsume_times
        times = row.reconsume_times
        return limit >= 0 and times is not None and times >= limit and row.outcome in LISTENER_SUSPENDS


judge = LaneJudge


def explain(found: LimitMissed) -> str:
    last, after, limit = found.last, found.next, found.limit
    if after.kind is Kind.DEAD_LETTER:
        return (
            f"{who(after)} gave up offset {after.queue_offset} of {after.lane} at {at(after)} after retry "
            f"{last.reconsume_times}; the limit is {limit} retries"
        )
    return (
        f"{who(after)} delivered offset {after.queue_offset} of {after.lane} once more at {at(after)}, after retry "
        f"{last.reconsume_times} had ended {last.outcome}; the limit is {limit} retries"
    )
