"""CMT-3 over columns: of a stretch in manual mode only what lies behind its last COMMIT is remembered."""

from __future__ import annotations

from spark_checkers.lanes import END, OP_COLUMNS, LaneItems, Machine, Op, Stretch, machine_kernel
from spark_checkers.progress import acknowledges
from spark_checkers.rows import NO_TEXT, NONE, Findings
from spark_checkers.twin import Twin
from specs.vocabulary import Kind, Outcome


class Incarnation:
    """One incarnation: the lowest message that a manual call took and no COMMIT has covered."""

    __slots__ = ("add", "lowest", "manual")

    def __init__(self, add: Op) -> None:
        self.add = add
        self.lowest: Op | None = None
        self.manual = False


class Lane(Machine):
    """The incarnations that were added and not dropped."""

    __slots__ = ("incarnations",)

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.incarnations: dict[int, Incarnation] = {}

    def takes(self, stretch: Stretch) -> bool:
        mine = self.incarnations.get(stretch.first.incarnation)
        if mine is None:
            return True
        mine.manual = stretch.first.manual
        covered = stretch.stop if not mine.manual else stretch.finished_to
        if covered > stretch.first.offset:
            mine.lowest = None
        if covered < stretch.stop and (mine.lowest is None or covered < mine.lowest.offset):
            if covered == stretch.first.offset:
                mine.lowest = stretch.first
            else:
                for phase, op in self.lane.digest.expand(stretch):
                    if phase == END and op.offset == covered:
                        mine.lowest = op
        return True

    def begins(self, op: Op) -> None:
        if op.kind is Kind.RESET:
            self.incarnations.clear()
        elif op.incarnation == NO_TEXT:
            return
        elif op.kind is Kind.ADD:
            self.incarnations[op.incarnation] = Incarnation(op)
        elif op.kind is Kind.DROP:
            self.incarnations.pop(op.incarnation, None)
        else:
            mine = self.incarnations.get(op.incarnation)
            if mine is None:
                return
            if op.kind is Kind.DELIVER:
                mine.manual = op.manual
            elif op.kind is Kind.COMMIT and mine.lowest is not None and op.value != NONE and not op.correction:
                self.stakes += 1
                if op.value > mine.lowest.offset:
                    self.found(mine.add, mine.lowest, op)

    def ends(self, op: Op) -> None:
        mine = self.incarnations.get(op.incarnation)
        if mine is None or op.offset == NONE:
            return
        if op.kind is Kind.DELIVER:
            if acknowledges(op):
                mine.lowest = None
            elif op.manual and (mine.lowest is None or op.offset < mine.lowest.offset):
                mine.lowest = op
        elif op.kind is Kind.DEAD_LETTER and op.outcome is Outcome.OK:
            manual = op.manual or (not op.has_mode and mine.manual)
            mine.lowest = mine.lowest if manual else None


_KINDS = (Kind.ADD, Kind.DROP, Kind.DELIVER, Kind.DEAD_LETTER, Kind.COMMIT, Kind.RESET)
TWIN = Twin("CMT-3", OP_COLUMNS, machine_kernel(Lane, _KINDS, lease=False))
find = TWIN.find
