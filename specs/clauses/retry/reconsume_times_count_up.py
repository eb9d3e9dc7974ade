"""The retry counter of a message goes 0, 1, 2 … within an incarnation.

The first delivery of an incarnation that was watched from its add carries 0, and each delivery after a suspension
carries one more than the one before, whatever was delivered in between. Each message of a call is counted by itself;
but one whose retries were used up, and which comes again only because others of its batch do, may carry the same count
once more. Only for messages of an original topic (copies, of messages to retry and of messages given up, carry counters
of their own), no manual ROLLBACK (it replays without counting) and no failed dead letter in between (it counts as
well). A call of which nobody saw the result, nor says that it was in auto mode, may have been a manual ROLLBACK, unless
the lane goes on beyond it. A lane dropped and added again counts from 0 again: that is another incarnation. So is what
a client does after it has left and come again, or died, whatever name the incarnation has then.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.judging import NOTHING, Finding
from specs.clauses.premises import DEAD_LETTER_SENT, NO_ROLLBACK, ORDERLY
from specs.clauses.retry.counting import COUNTING_KINDS, Call, Counter, CountingJudge
from specs.clauses.rows import asks_again, ended_before
from specs.clauses.words import at, who
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Party

ID = "RTY-3"
TITLE = "reconsume times count up"
STATEMENT = "Within an incarnation, the reconsume times of a message count up from 0, one by one."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (ORDERLY, NO_ROLLBACK, DEAD_LETTER_SENT)
SOURCES = ("docs/sources.md#orderly-loop",)
KINDS = COUNTING_KINDS
SETTINGS = ("batch", "max_reconsume_times")
NEEDS = frozenset({Kind.DELIVER})
LOOKS_BACK = True


@dataclass(frozen=True, slots=True)
class Miscounted(Finding):
    """before: the delivery that it repeats, or the add that it is the first delivery after."""

    before: Row
    again: Row
    expected: int


class LaneJudge(CountingJudge):
    """Compares each delivery with the one before of the same incarnation."""

    __slots__ = ()

    def delivered(self, counter: Counter, call: Call | None, row: Row) -> Iterable[Finding]:
        times, offset = row.reconsume_times, row.queue_offset or 0
        if times is None:
            return NOTHING
        if call is None:
            if offset <= counter.highest or counter.add is None or times == 0:
                return NOTHING
            if self._is_gone(counter.add, row):
                return NOTHING
            self.opportunities += 1
            return (Miscounted(counter.add, row, 0),)
        last = call.rows[offset]
        before = last.reconsume_times
        if (
            before is None
            or offset in call.failed
            or not asks_again(last)
            or not ended_before(last, row)
            or self._is_gone(last, row)
        ):
            return NOTHING
        of_others = (len(call.rows) > 1 or not self.is_whole(call)) and self.is_exhausted(last)
        if of_others and times in (before, before + 1):
            return NOTHING
        self.opportunities += 1
        return NOTHING if times == before + 1 else (Miscounted(last, row, before + 1),)

    def _is_gone(self, before: Row, row: Row) -> bool:
        """Did the client that delivers this leave and come again, or die, since that one?"""
        return self.context.is_of_an_old_life(row.client_id, row.group, before)


judge = LaneJudge


def explain(found: Miscounted) -> str:
    before, again = found.before, found.again
    said = f"{who(again)} delivered offset {again.queue_offset} of {again.lane} at {at(again)} as retry"
    if before.kind is Kind.ADD:
        return f"{said} {again.reconsume_times}, for the first time since it added the lane at {at(before)}: 0 is right"
    return (
        f"{said} {again.reconsume_times}; the delivery before, at {at(before)}, was retry {before.reconsume_times} and "
        f"ended {before.outcome}, so {found.expected} is right"
    )
