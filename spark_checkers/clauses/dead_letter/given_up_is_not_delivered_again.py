"""DLQ-3 over columns: a stretch that holds nothing that was given up is passed over."""

from __future__ import annotations

from spark_checkers.lanes import OP_COLUMNS, LaneItems, Machine, Op, Stretch, machine_kernel
from spark_checkers.rows import NO_TEXT, Findings
from spark_checkers.twin import Twin
from specs.vocabulary import Kind, Outcome


class Lane(Machine):
    """For each incarnation, its acknowledged dead letters by offset; whoever was in manual mode is left alone."""

    __slots__ = ("given_up", "manual")

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.given_up: dict[int, dict[int, Op]] = {}
        self.manual: set[int] = set()

    def takes(self, stretch: Stretch) -> bool:
        name = stretch.first.incarnation
        if any(stretch.first.offset <= offset < stretch.stop for offset in self.given_up.get(name, ())):
            return False
        if stretch.first.manual:
            self.manual.add(name)
        return True

    def begins(self, op: Op) -> None:
        if op.kind is Kind.RESET:
            self.given_up.clear()
            self.manual.clear()
        elif op.kind is Kind.ADD:
            self.given_up.pop(op.incarnation, None)
            self.manual.discard(op.incarnation)
        elif op.kind is Kind.DELIVER and op.incarnation != NO_TEXT and op.incarnation not in self.manual:
            before = self.given_up.get(op.incarnation, {}).get(op.offset)
            if before is not None:
                self.found(before, op)

    def ends(self, op: Op) -> None:
        if op.kind not in (Kind.DELIVER, Kind.DEAD_LETTER) or op.incarnation == NO_TEXT or op.offset < 0:
            return
        if op.manual:
            self.manual.add(op.incarnation)
        elif op.kind is Kind.DEAD_LETTER and op.outcome is Outcome.OK and op.incarnation not in self.manual:
            self.stakes += 1
            self.given_up.setdefault(op.incarnation, {}).setdefault(op.offset, op)


_KINDS = (Kind.DELIVER, Kind.DEAD_LETTER, Kind.ADD, Kind.RESET)
TWIN = Twin("DLQ-3", OP_COLUMNS, machine_kernel(Lane, _KINDS, lease=False))
find = TWIN.find
