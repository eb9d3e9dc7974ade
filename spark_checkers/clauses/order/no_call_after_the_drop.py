"""ORD-13 over columns: a stretch of an incarnation that has dropped nothing is taken whole."""

from __future__ import annotations

from functools import partial

from spark_checkers.lanes import OP_COLUMNS, LaneItems, Machine, Op, Stretch, machine_kernel
from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.rows import NO_TEXT, Findings
from spark_checkers.twin import Twin
from specs.vocabulary import Kind, Outcome


class Lane(Machine):
    """The drop of each incarnation that is over."""

    __slots__ = ("dropped",)

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.dropped: dict[int, Op] = {}

    def takes(self, stretch: Stretch) -> bool:
        return stretch.first.incarnation not in self.dropped

    def begins(self, op: Op) -> None:
        if op.incarnation == NO_TEXT:
            return
        if op.kind is Kind.DROP:
            self.stakes += 1
            self.dropped[op.incarnation] = op
        elif op.kind is Kind.ADD:
            self.dropped.pop(op.incarnation, None)
        elif op.incarnation in self.dropped:
            self.found(self.dropped[op.incarnation], op)


TWIN = Twin(
    "ORD-13", OP_COLUMNS, machine_kernel(Lane, (Kind.DELIVER, Kind.ADD, Kind.DROP), lease=False)
)
find = TWIN.find


# ---- what breaks the clause, planted


def call_after_drop(trace: Trace) -> Changes:
    for rows in trace.works:
        calls = [row for row in rows if row.kind is Kind.DELIVER and row.outcome is Outcome.SUCCESS]
        drops = [row for row in rows if row.kind is Kind.DROP]
        if calls and drops:
            yield partial(
                lambda c, d: trace.with_more([trace.another(c, d, 1)], [d.seq_begin]),
                calls[-1],
                drops[-1],
            )


DEFECTS = (
    Mutant(
        "call-after-drop", "ORD-13", "a call starts after the lane was dropped", call_after_drop
    ),
)
