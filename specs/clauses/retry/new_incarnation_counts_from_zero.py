"""When a lane is assigned anew, to the same client or another, its messages count their retries from 0 again.

The counter of an original message lives in the client's memory of one incarnation. So the first delivery of a
message by an incarnation that was watched from its add carries 0, however often another incarnation had delivered
it. At stake where another incarnation had suspended the message before; of these the last 1024 of a lane are
remembered, which is more than a client holds of it. Which delivery is the first of its message is asked for each
message, not for the lane: keys go side by side. A copy in a retry topic carries its own counter. Says nothing once the
lane was reset.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.intervals import Intervals
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import IN_PLACE, NO_RESET
from specs.clauses.rows import asks_again, is_copy_topic
from specs.clauses.words import at, who
from specs.history.row import Row
from specs.plan.traits import Stake, Trait
from specs.vocabulary import Key, Kind, Party

ID = "RTY-11"
TITLE = "a lane assigned anew counts from 0"
STATEMENT = "A message that another incarnation had retried counts from 0 when its lane is dropped and assigned anew."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (IN_PLACE, NO_RESET)
SOURCES = ("docs/sources.md#orderly-loop",)
REFINES = ("RTY-3",)
STAKES = (Stake(Trait.LONG_REST),)
KINDS = frozenset({Kind.DELIVER, Kind.ADD, Kind.RESET})
NEEDS = frozenset({Kind.ADD, Kind.DELIVER})


@dataclass(frozen=True, slots=True)
class CountedOn(Finding):
    """before: a suspended delivery by another incarnation. add: where this one began."""

    before: Row
    add: Row
    first: Row


REMEMBERED = 1024
"""So many suspended messages of a lane: RocketMQ's clients pull no further once they hold 1000."""


class _Incarnation:
    __slots__ = ("add", "delivered")

    def __init__(self, add: Row | None) -> None:
        self.add = add
        self.delivered = Intervals()


class LaneJudge(Judge):
    """Remembers the messages of the lane that were suspended last, and what each incarnation has delivered."""

    __slots__ = ("incarnations", "suspended")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.incarnations: dict[str, _Incarnation] = {}
        self.suspended: dict[int, Row] = {}

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.RESET:
            self.incarnations.clear()
            self.suspended.clear()
        elif row.incarnation is None:
            return NOTHING
        elif row.kind is Kind.ADD:
            self.incarnations[row.incarnation] = _Incarnation(row)
        elif row.queue_offset is not None and not is_copy_topic(row.topic):
            mine = self.incarnations.get(row.incarnation)
            if mine is None:
                mine = self.incarnations[row.incarnation] = _Incarnation(None)
            offset, is_first = row.queue_offset, row.queue_offset not in mine.delivered
            mine.delivered.add(offset)
            before = self.suspended.get(offset)
            if (
                is_first
                and before is not None
                and mine.add is not None
                and row.reconsume_times is not None
            ):
                self.opportunities += 1
                if row.reconsume_times != 0:
                    return (CountedOn(before, mine.add, row),)
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        if (
            row.kind is Kind.DELIVER
            and asks_again(row)
            and row.incarnation
            and row.queue_offset is not None
        ):
            self.suspended.pop(row.queue_offset, None)
            self.suspended[row.queue_offset] = row
            if len(self.suspended) > REMEMBERED:
                del self.suspended[next(iter(self.suspended))]
        return NOTHING


judge = LaneJudge


def explain(found: CountedOn) -> str:
    before, first = found.before, found.first
    return (
        f"{who(first)} delivered offset {first.queue_offset} of {first.lane} at {at(first)} as retry "
        f"{first.reconsume_times}, for the first time since it added the lane at {at(found.add)}; that "
        f"{who(before)} had tried it before, as retry {before.reconsume_times}, does not count"
    )
