"""DLQ-10 over columns: only dead letters are compared; of deliveries it matters who made one in manual mode."""

from __future__ import annotations

from spark_checkers.lanes import OP_COLUMNS, LaneItems, Machine, Op, Stretch, machine_kernel
from spark_checkers.rows import NO_TEXT, Findings
from spark_checkers.twin import Twin
from specs.vocabulary import Kind, Outcome


class Lane(Machine):
    """By incarnation and offset the first acknowledged dead letter; whoever was in manual mode is left alone."""

    __slots__ = ("letters", "manual")

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.letters: dict[tuple[int, int], Op] = {}
        self.manual: set[int] = set()

    def takes(self, stretch: Stretch) -> bool:
        if stretch.first.manual:
            self.manual.add(stretch.first.incarnation)
        return True

    def begins(self, op: Op) -> None:
        if op.kind is Kind.RESET:
            self.letters.clear()
            self.manual.clear()
        elif op.kind is Kind.ADD:
            self.letters = {key: letter for key, letter in self.letters.items() if key[0] != op.incarnation}
            self.manual.discard(op.incarnation)
        elif op.kind is Kind.DEAD_LETTER and not op.manual and op.incarnation not in self.manual:
            before = self.letters.get((op.incarnation, op.offset))
            if before is not None:
                self.found(before, op)

    def ends(self, op: Op) -> None:
        if op.kind not in (Kind.DELIVER, Kind.DEAD_LETTER) or op.incarnation == NO_TEXT or op.offset < 0:
            return
        if op.manual:
            self.manual.add(op.incarnation)
        elif op.kind is Kind.DEAD_LETTER and op.outcome is Outcome.OK and op.incarnation not in self.manual:
            self.stakes += 1
            self.letters.setdefault((op.incarnation, op.offset), op)


_KINDS = (Kind.DELIVER, Kind.DEAD_LETTER, Kind.ADD, Kind.RESET)
TWIN = Twin("DLQ-10", OP_COLUMNS, machine_kernel(Lane, _KINDS, lease=False))
find = TWIN.find
