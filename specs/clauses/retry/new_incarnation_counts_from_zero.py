"""When a lane is assigned anew, to the same client or another, its messages count their retries from 0 again.

The counter of an original message lives in the client's memory of one incarnation. So the first delivery of a
message by an incarnation that was watched from its add carries 0, however often another incarnation had delivered
it. At stake where another incarnation had suspended the message before; of these the last 1024 of a lane are
remembered, which is more than a client holds of it. Which delivery is the first of its message is asked for each
message, not for the lane: keys go side by side. A copy in a retry topic carries its own counter. Says nothing once the
lane was reset.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from specs.clauses.judging import Finding
from specs.clauses.premises import IN_PLACE, NO_RESET
from specs.clauses.words import at, who
from specs.facts.findings import Findings
from specs.facts.intervals import Intervals
from specs.facts.lanes import (
    OP_COLUMNS,
    LaneItems,
    Machine,
    Op,
    Stretch,
    asks_again,
    each_lane,
    ends_as,
)
from specs.facts.segments import NO_TEXT, NONE
from specs.history.row import Row
from specs.plan.traits import Stake, Trait
from specs.vocabulary import DLQ_PREFIX, LISTENER_SUSPENDS, RETRY_PREFIX, Key, Kind, Outcome, Party

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
COLUMNS = OP_COLUMNS


@dataclass(frozen=True, slots=True)
class CountedOn(Finding):
    """before: a suspended delivery by another incarnation. add: where this one began."""

    before: Row
    add: Row
    first: Row


REMEMBERED = 1024
"""So many suspended messages of a lane: RocketMQ's clients pull no further once they hold 1000."""


class Lane(Machine):
    """The messages that were suspended last; of each incarnation its add and what it has delivered.

    A stretch that holds nothing that was suspended lately is passed over.
    """

    ENDS = ends_as([Kind.DELIVER], (*LISTENER_SUSPENDS, Outcome.ROLLBACK))

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.counts = not lane.topic.startswith((RETRY_PREFIX, DLQ_PREFIX))
        self.adds: dict[int, Op] = {}
        self.done: dict[int, Intervals] = {}
        self.suspended: OrderedDict[int, Op] = OrderedDict()
        self.highest = -1  # of the offsets that were ever in it

    def takes(self, stretch: Stretch) -> bool:
        if self.highest >= stretch.first.offset and not self.suspended.keys().isdisjoint(
            range(stretch.first.offset, stretch.stop)
        ):
            return False
        self.done.setdefault(stretch.first.incarnation, Intervals()).add(
            stretch.first.offset, stretch.stop
        )
        return True

    def begins(self, op: Op) -> None:
        if op.kind is Kind.RESET:
            self.adds.clear()
            self.done.clear()
            self.suspended.clear()
        elif op.incarnation == NO_TEXT or not self.counts:
            return
        elif op.kind is Kind.ADD:
            self.adds[op.incarnation] = op
            self.done.pop(op.incarnation, None)
        elif op.offset >= 0:
            done = self.done.setdefault(op.incarnation, Intervals())
            before, add = self.suspended.get(op.offset), self.adds.get(op.incarnation)
            if (
                op.offset not in done
                and before is not None
                and add is not None
                and op.reconsume != NONE
            ):
                self.stakes += 1
                if op.reconsume != 0:
                    self.broken(CountedOn, before=before, add=add, first=op)
            done.add(op.offset)

    def ends(self, op: Op) -> None:
        if (
            op.kind is Kind.DELIVER
            and asks_again(op)
            and op.incarnation != NO_TEXT
            and op.offset >= 0
        ):
            self.suspended[op.offset] = op
            self.suspended.move_to_end(op.offset)
            self.highest = max(self.highest, op.offset)
            if len(self.suspended) > REMEMBERED:
                self.suspended.popitem(last=False)


judge = each_lane(Lane, KINDS, lease=False)


def explain(found: CountedOn) -> str:
    before, first = found.before, found.first
    return (
        f"{who(first)} delivered offset {first.queue_offset} of {first.lane} at {at(first)} as retry "
        f"{first.reconsume_times}, for the first time since it added the lane at {at(found.add)}; that "
        f"{who(before)} had tried it before, as retry {before.reconsume_times}, does not count"
    )
