"""LSE-6 over columns: lock and unlock rows are few, so a machine per lane goes through them."""

from __future__ import annotations

from spark_checkers.grants import RELEASED, LastGrant, answers
from spark_checkers.lanes import OP_COLUMNS, LaneItems, Machine, Op, machine_kernel
from spark_checkers.rows import NO_TEXT, Findings
from spark_checkers.twin import Twin
from specs.vocabulary import Kind, Outcome


class Lane(Machine):
    """The last grant and its owner's answered unlock."""

    __slots__ = ("last",)

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.last = LastGrant(self)

    def begins(self, op: Op) -> None:
        if op.kind is Kind.LOCK:
            self.last.lock_begins(op)

    def ends(self, op: Op) -> None:
        last = self.last
        if op.client == NO_TEXT:
            return
        if op.kind is Kind.UNLOCK:
            last.unlock_ends(op)
            return
        granted = op.outcome is Outcome.OK
        if answers(op) and last.why_free(op) == RELEASED:
            self.stakes += 1
            if not granted:
                self.found(last.grant, last.unlock, op, certain=self.one_clock)
        if granted:
            last.granted(op)


TWIN = Twin("LSE-6", OP_COLUMNS, machine_kernel(Lane, (Kind.LOCK, Kind.UNLOCK), lease=True))
find = TWIN.find
