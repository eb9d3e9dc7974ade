"""The retry counter of a message goes 0, 1, 2 … within an incarnation.

The first delivery of an incarnation that was watched from its add carries 0, and each delivery after a suspension
carries one more than the one before. Only for messages of an original topic (a copy in a retry topic carries its
own counter), one message per call, no ROLLBACK (it replays without counting) and no failed dead letter in between
(it counts as well). A lane dropped and added again counts from 0 again: that is another incarnation.
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
    asks_again,
    at,
    ended_before,
    who,
)
from specs.clauses.retry.counting import COUNTING_KINDS, Counter, CountingJudge
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Party

ID = "RTY-3"
TITLE = "reconsume times count up"
STATEMENT = "Within an incarnation, the reconsume times of a message count up from 0, one by one."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (ORDERLY, BATCH_OF_ONE, NO_ROLLBACK, DEAD_LETTER_SENT)
SOURCES = ("docs/sources.md#orderly-loop",)
KINDS = COUNTING_KINDS
NEEDS = frozenset({Kind.DELIVER})


@dataclass(frozen=True, slots=True)
class Miscounted(Finding):
    """before: the delivery that it repeats, or the add that it is the first delivery after."""

    before: Row
    again: Row
    expected: int


class LaneJudge(CountingJudge):
    """Compares each delivery with the one before of the same incarnation."""

    __slots__ = ()

    def delivered(self, counter: Counter, row: Row) -> Iterable[Finding]:
        times, last, offset = row.reconsume_times, counter.last, row.queue_offset
        if times is None or offset is None:
            return NOTHING
        if last is not None and last.queue_offset == offset:
            before = last.reconsume_times
            if before is None or counter.dead_letter_failed or not asks_again(last) or not ended_before(last, row):
                return NOTHING
            self.opportunities += 1
            return NOTHING if times == before + 1 else (Miscounted(last, row, before + 1),)
        if offset > counter.highest and counter.add is not None and times != 0:
            return (Miscounted(counter.add, row, 0),)
        return NOTHING


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
