"""RTY-11 over columns: a stretch that holds nothing that was suspended lately is passed over."""

from __future__ import annotations

from collections import OrderedDict

from spark_checkers.lanes import (
    OP_COLUMNS,
    LaneItems,
    Machine,
    Op,
    Stretch,
    asks_again,
    machine_kernel,
)
from spark_checkers.rows import NO_TEXT, NONE, Findings
from spark_checkers.twin import Twin
from specs.clauses.base import Intervals
from specs.vocabulary import DLQ_PREFIX, RETRY_PREFIX, Kind

_KNOWN_AT_ONCE = 1024


class Lane(Machine):
    """The messages that were suspended last; of each incarnation its add and what it has delivered."""

    __slots__ = ("adds", "counts", "done", "suspended")

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.counts = not lane.topic.startswith((RETRY_PREFIX, DLQ_PREFIX))
        self.adds: dict[int, Op] = {}
        self.done: dict[int, Intervals] = {}
        self.suspended: OrderedDict[int, Op] = OrderedDict()

    def takes(self, stretch: Stretch) -> bool:
        if any(stretch.first.offset <= offset < stretch.stop for offset in self.suspended):
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
                    self.found(before, add, op)
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
            if len(self.suspended) > _KNOWN_AT_ONCE:
                self.suspended.popitem(last=False)


TWIN = Twin(
    "RTY-11", OP_COLUMNS, machine_kernel(Lane, (Kind.DELIVER, Kind.ADD, Kind.RESET), lease=False)
)
find = TWIN.find
