"""CMT-4 over columns: whatever happens to calls, only commits and what clears them are looked at."""

from __future__ import annotations

from spark_checkers.lanes import OP_COLUMNS, LaneItems, Machine, Op, ended_before, machine_kernel
from spark_checkers.rows import NO_TEXT, NONE, Findings
from spark_checkers.twin import Twin
from specs.vocabulary import Kind


class Lane(Machine):
    """For each incarnation, the highest commit that has ended."""

    __slots__ = ("highest",)

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.highest: dict[int, Op] = {}

    def begins(self, op: Op) -> None:
        if op.kind is Kind.RESET:
            self.highest.clear()
        elif op.incarnation == NO_TEXT:
            return
        elif op.kind is Kind.ADD or op.corrected:
            self.highest.pop(op.incarnation, None)
        elif op.kind is Kind.COMMIT and op.value != NONE:
            highest = self.highest.get(op.incarnation)
            if highest is not None and ended_before(highest, op):
                self.stakes += 1
                if op.value < highest.value:
                    self.found(highest, op)

    def ends(self, op: Op) -> None:
        if op.incarnation == NO_TEXT:
            return
        if op.kind is Kind.FETCH_OFFSET:
            self.highest.pop(op.incarnation, None)
        elif op.kind is Kind.COMMIT and op.value != NONE and not op.corrected:
            highest = self.highest.get(op.incarnation)
            if highest is None or op.value > highest.value:
                self.highest[op.incarnation] = op


_KINDS = (Kind.COMMIT, Kind.ADD, Kind.RESET, Kind.FETCH_OFFSET)
TWIN = Twin("CMT-4", OP_COLUMNS, machine_kernel(Lane, _KINDS, lease=False))
find = TWIN.find
