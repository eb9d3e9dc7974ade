"""RTY-11 over columns: a stretch that holds nothing of the lane's last suspended batch is passed over."""

from __future__ import annotations

from spark_checkers.lanes import OP_COLUMNS, LaneItems, Machine, Op, Stretch, asks_again, machine_kernel
from spark_checkers.rows import NO_TEXT, NONE, Findings
from spark_checkers.twin import Twin
from specs.vocabulary import DLQ_PREFIX, RETRY_PREFIX, Kind


class Lane(Machine):
    """The lane's last suspended batch; of each incarnation its add and the highest offset it has come to."""

    __slots__ = ("adds", "call", "counts", "highest", "suspended")

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.counts = not lane.topic.startswith((RETRY_PREFIX, DLQ_PREFIX))
        self.adds: dict[int, Op] = {}
        self.highest: dict[int, int] = {}
        self.suspended: dict[int, Op] = {}
        self.call = NONE

    def takes(self, stretch: Stretch) -> bool:
        name = stretch.first.incarnation
        if any(stretch.first.offset <= offset < stretch.stop for offset in self.suspended):
            return False
        self.highest[name] = max(self.highest.get(name, -1), stretch.stop - 1)
        return True

    def begins(self, op: Op) -> None:
        if op.kind is Kind.RESET:
            self.adds.clear()
            self.highest.clear()
            self.suspended.clear()
        elif op.incarnation == NO_TEXT or not self.counts:
            return
        elif op.kind is Kind.ADD:
            self.adds[op.incarnation] = op
            self.highest[op.incarnation] = -1
        elif op.offset >= 0:
            highest = self.highest.get(op.incarnation, -1)
            self.highest[op.incarnation] = max(highest, op.offset)
            before, add = self.suspended.get(op.offset), self.adds.get(op.incarnation)
            if op.offset > highest and before is not None and add is not None and op.reconsume != NONE:
                self.stakes += 1
                if op.reconsume != 0:
                    self.found(before, add, op)

    def ends(self, op: Op) -> None:
        if op.kind is Kind.DELIVER and asks_again(op) and op.incarnation != NO_TEXT and op.offset >= 0:
            if op.op != self.call:
                self.call = op.op
                self.suspended.clear()
            self.suspended[op.offset] = op


TWIN = Twin("RTY-11", OP_COLUMNS, machine_kernel(Lane, (Kind.DELIVER, Kind.ADD, Kind.RESET), lease=False))
find = TWIN.find
