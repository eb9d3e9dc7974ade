"""ORD-2 over columns: a stretch above everything delivered so far is taken whole."""

from __future__ import annotations

from spark_checkers.lanes import OP_COLUMNS, LaneItems, Machine, Op, Stretch, machine_kernel
from spark_checkers.rows import NO_TEXT, Findings
from spark_checkers.twin import Twin
from specs.clauses.base import Intervals
from specs.vocabulary import Kind


class Delivered:
    """What one incarnation delivered, and the row of the highest offset."""

    __slots__ = ("highest", "offsets")

    def __init__(self, highest: Op) -> None:
        self.highest = highest
        self.offsets = Intervals()


class Lane(Machine):
    """What each incarnation delivered since its ADD, or since a reset."""

    __slots__ = ("delivered", "void")

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.delivered: dict[int, Delivered] = {}
        self.void: set[int] = set()  # had delivered when the offset was reset

    def takes(self, stretch: Stretch) -> bool:
        first = stretch.first
        if first.incarnation in self.void:
            return True
        mine = self.delivered.get(first.incarnation)
        if mine is None:
            mine = self.delivered[first.incarnation] = Delivered(first)
            self.stakes -= 1
        elif first.offset <= mine.highest.offset:
            return False
        self.stakes += stretch.rows
        mine.offsets.add(first.offset, stretch.stop)
        mine.highest = stretch.last
        return True

    def begins(self, op: Op) -> None:
        if op.kind is Kind.RESET:
            self.void.update(self.delivered)
            self.delivered.clear()
        elif op.incarnation == NO_TEXT:
            return
        elif op.kind is Kind.ADD:
            self.delivered.pop(op.incarnation, None)
            self.void.discard(op.incarnation)
        elif op.offset >= 0 and op.incarnation not in self.void:
            self._deliver(op)

    def _deliver(self, op: Op) -> None:
        mine = self.delivered.get(op.incarnation)
        if mine is None:
            mine = self.delivered[op.incarnation] = Delivered(op)
        elif op.offset > mine.highest.offset:
            self.stakes += 1
            mine.highest = op
        elif op.offset not in mine.offsets:
            self.stakes += 1
            self.found(mine.highest, op)
        mine.offsets.add(op.offset)


TWIN = Twin("ORD-2", OP_COLUMNS, machine_kernel(Lane, (Kind.DELIVER, Kind.ADD, Kind.RESET), lease=False))
find = TWIN.find
