"""RTY-8 over columns: nothing but dead letters is looked at, in runs without a limit."""

from __future__ import annotations

from spark_checkers.lanes import OP_COLUMNS, LaneItems, Machine, Op, Stretch, machine_kernel
from spark_checkers.rows import NO_TEXT, Findings
from spark_checkers.twin import Twin
from specs.vocabulary import LISTENER_SUSPENDS, Kind


class Lane(Machine):
    """The last delivery of each incarnation."""

    __slots__ = ("last",)

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.last: dict[int, Op] = {}

    def takes(self, stretch: Stretch) -> bool:
        self.last[stretch.first.incarnation] = stretch.last
        return True

    def begins(self, op: Op) -> None:
        if op.incarnation == NO_TEXT:
            return
        if op.kind is Kind.ADD:
            self.last.pop(op.incarnation, None)
        elif op.kind is Kind.DELIVER:
            self.last[op.incarnation] = op
        elif op.offset >= 0:
            last = self.last.get(op.incarnation)
            if last is not None and last.offset == op.offset:
                self.found(last, op)

    def ends(self, op: Op) -> None:
        if op.kind is Kind.DELIVER and op.incarnation != NO_TEXT and op.outcome in LISTENER_SUSPENDS:
            self.stakes += 1


TWIN = Twin("RTY-8", OP_COLUMNS, machine_kernel(Lane, (Kind.DELIVER, Kind.DEAD_LETTER, Kind.ADD), lease=False))
find = TWIN.find
