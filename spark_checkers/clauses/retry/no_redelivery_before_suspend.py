"""RTY-1 over columns: a stretch that holds nothing of the last suspended batch is passed over."""

from __future__ import annotations

from spark_checkers.lanes import OP_COLUMNS, LaneItems, Machine, Op, Stretch, asks_again, machine_kernel
from spark_checkers.rows import MS, NEVER, NO_TEXT, Findings
from spark_checkers.twin import Twin
from specs.vocabulary import Kind

LEAST_MS, MOST_MS = 10, 30_000


def wait_ms(op: Op, default_ms: int) -> int:
    """The pause that the ended call asks for."""
    return min(max(default_ms if op.suspend < 0 else op.suspend, LEAST_MS), MOST_MS)


class Lane(Machine):
    """For each incarnation, the messages of its last suspended batch that have not come again."""

    __slots__ = ("suspended",)

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.suspended: dict[int, dict[int, Op]] = {}

    def takes(self, stretch: Stretch) -> bool:
        batch = self.suspended.get(stretch.first.incarnation)
        return not batch or not any(stretch.first.offset <= offset < stretch.stop for offset in batch)

    def begins(self, op: Op) -> None:
        if op.kind is Kind.RESET:
            self.suspended.clear()
        elif op.incarnation == NO_TEXT:
            return
        elif op.kind is Kind.ADD:
            self.suspended.pop(op.incarnation, None)
        elif op.offset >= 0:
            batch = self.suspended.get(op.incarnation)
            before = batch.pop(op.offset, None) if batch else None
            if before is not None and before.ended < NEVER:
                self.stakes += 1
                if op.started <= before.ended + (wait_ms(before, self.config.suspend_ms) - 1) * MS:
                    self.found(before, op)

    def ends(self, op: Op) -> None:
        if op.kind is Kind.DELIVER and asks_again(op) and op.incarnation != NO_TEXT and op.offset >= 0:
            batch = self.suspended.get(op.incarnation)
            if not batch or next(iter(batch.values())).op != op.op:
                batch = self.suspended[op.incarnation] = {}
            batch[op.offset] = op


TWIN = Twin("RTY-1", OP_COLUMNS, machine_kernel(Lane, (Kind.DELIVER, Kind.ADD, Kind.RESET), lease=False))
find = TWIN.find
