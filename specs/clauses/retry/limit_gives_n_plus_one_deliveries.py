"""With a limit of N retries a message is delivered N + 1 times in an incarnation, and is then given up.

(a) After a delivery that carried N (or more) and was suspended, the message does not come again, at once or later,
unless its dead letter failed. Where a call held several messages this is claimed once all of them carried N or more: as
long as one of them may be tried again, or its dead letter failed, the batch comes again as a whole. (b) No message is
given up whose last delivery carried less than N. N = 0 means one delivery; no limit (-1) says nothing. The premises are
those of RTY-3.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.judging import NOTHING, Finding
from specs.clauses.premises import DEAD_LETTER_SENT, NO_ROLLBACK, ORDERLY
from specs.clauses.retry.counting import COUNTING_KINDS, Call, Counter, CountingJudge
from specs.clauses.rows import ended_before
from specs.clauses.words import at, who
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Party

ID = "RTY-5"
TITLE = "a limit of N gives N + 1 deliveries"
STATEMENT = "With a limit of N retries, a message that never succeeds is delivered N + 1 times and then given up."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (ORDERLY, NO_ROLLBACK, DEAD_LETTER_SENT)
SOURCES = ("docs/sources.md#orderly-loop", "docs/sources.md#dead-letters")
KINDS = COUNTING_KINDS
SETTINGS = ("batch", "max_reconsume_times")
NEEDS = frozenset({Kind.DELIVER})
LOOKS_BACK = True


@dataclass(frozen=True, slots=True)
class LimitMissed(Finding):
    """next: the delivery that came too much, or the dead letter that came too soon. call: what shows that the call is
    there as a whole, where a history may lack some of it."""

    last: Row
    next: Row
    limit: int
    call: tuple[Row, ...] = ()


class LaneJudge(CountingJudge):
    """Compares what follows a delivery with the counter that it carried."""

    __slots__ = ()

    def delivered(self, counter: Counter, call: Call | None, row: Row) -> Iterable[Finding]:
        if call is None or call.failed:
            return NOTHING
        shown = self._over(counter, call)
        last = call.rows[row.queue_offset or 0]
        if shown is None or not ended_before(last, row):
            return NOTHING
        return (LimitMissed(last, row, self.config.max_reconsume_times, shown),)

    def given_up(self, call: Call, row: Row) -> Iterable[Finding]:
        offset, limit = row.queue_offset or 0, self.config.max_reconsume_times
        last = call.rows[offset]
        if limit < 0 or last.reconsume_times is None or offset in call.failed:
            return NOTHING
        self.opportunities += 1
        return (LimitMissed(last, row, limit),) if last.reconsume_times < limit else NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        counter = self.counters.get(row.incarnation or "")
        if row.kind is Kind.DELIVER and counter is not None and not counter.rolled_back:
            call = counter.calls.get(row.queue_offset if row.queue_offset is not None else -1)
            mine = call is not None and call.op == row.op_id
            if mine and call is not None and self._over(counter, call) is not None:
                self.opportunities += 1
        return CountingJudge.ends(self, row)

    def _over(self, counter: Counter, call: Call) -> tuple[Row, ...] | None:
        """What shows that each message of the call was delivered for the last time allowed, in vain; None: it was not.

        In a closed world, and of a call of one message, no row is missing. Else the call is full, or the incarnation is
        there from its begin on.
        """
        if not all(self.is_exhausted(row) for row in call.rows.values()):
            return None
        if self.context.info.closed_world or self.config.batch == 1:
            return ()
        if len(call.rows) >= self.config.batch:
            return tuple(call.rows.values())
        return None if counter.add is None else (counter.add, *call.rows.values())


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
