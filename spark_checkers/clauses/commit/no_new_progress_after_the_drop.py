"""CMT-6 over columns: a stretch before the drop moves one number; one that reaches beyond it is gone through."""

from __future__ import annotations

from spark_checkers.lanes import OP_COLUMNS, LaneItems, Machine, Op, Stretch, machine_kernel
from spark_checkers.progress import acknowledges
from spark_checkers.rows import NO_TEXT, NONE, Findings
from spark_checkers.twin import Twin
from specs.vocabulary import Kind, Outcome


class Incarnation:
    """One incarnation: the highest offset that it may report (None: nobody knows), and its drop."""

    __slots__ = ("add", "drop", "finished")

    def __init__(self, add: Op) -> None:
        self.add = add
        self.finished: int | None = None if add.value == NONE else add.value
        self.drop: Op | None = None

    def reached(self, offset: int) -> None:
        if self.finished is not None and offset > self.finished:
            self.finished = offset


class Lane(Machine):
    """The incarnations that were added."""

    __slots__ = ("incarnations",)

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.incarnations: dict[int, Incarnation] = {}

    def takes(self, stretch: Stretch) -> bool:
        mine = self.incarnations.get(stretch.first.incarnation)
        if mine is not None and mine.drop is not None:
            return False
        if mine is not None and stretch.finished_to > stretch.first.offset:
            mine.reached(stretch.finished_to)
        return True

    def begins(self, op: Op) -> None:
        if op.kind is Kind.RESET:
            self.incarnations.clear()
        elif op.incarnation == NO_TEXT:
            return
        elif op.kind is Kind.ADD:
            self.incarnations[op.incarnation] = Incarnation(op)
        else:
            mine = self.incarnations.get(op.incarnation)
            if mine is None:
                return
            if op.kind is Kind.DROP:
                mine.drop = mine.drop or op
            elif op.kind is Kind.COMMIT and op.value != NONE:
                self._committed(mine, op)

    def _committed(self, mine: Incarnation, op: Op) -> None:
        if mine.drop is None:
            mine.reached(op.value)
        elif mine.finished is not None and not op.corrected:
            self.stakes += 1
            if op.value > mine.finished:
                self.found(mine.add, mine.drop, op)

    def ends(self, op: Op) -> None:
        mine = self.incarnations.get(op.incarnation)
        if mine is None:
            return
        before = mine.drop is None
        if op.kind is Kind.FETCH_OFFSET and before:
            if op.outcome is Outcome.OK and op.value >= 0:
                mine.reached(op.value)
            elif op.outcome is Outcome.REFUSED and op.value == -1 and self.config.consume_from != "first":
                mine.finished = None
        elif op.offset == NONE:
            return
        elif op.kind is Kind.DELIVER and acknowledges(op):
            if before:
                mine.reached(op.offset + 1)
            elif mine.finished is not None:
                self.stakes += 1
        elif op.kind is Kind.DEAD_LETTER and op.outcome is Outcome.OK and before:
            mine.reached(op.offset + 1)


_KINDS = (Kind.ADD, Kind.DROP, Kind.DELIVER, Kind.DEAD_LETTER, Kind.COMMIT, Kind.FETCH_OFFSET, Kind.RESET)
TWIN = Twin("CMT-6", OP_COLUMNS, machine_kernel(Lane, _KINDS, lease=False))
find = TWIN.find
