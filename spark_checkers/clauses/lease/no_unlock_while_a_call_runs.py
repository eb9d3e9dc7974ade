"""LSE-15 over columns: unlocks are few, and of a stretch only the last call may run while one begins."""

from __future__ import annotations

from spark_checkers.lanes import OP_COLUMNS, LaneItems, Machine, Op, Stretch, ended_before, machine_kernel
from spark_checkers.rows import MS, NO_TEXT, Findings
from spark_checkers.twin import Twin
from specs.vocabulary import Kind, Outcome


class Lane(Machine):
    """Of each client's calls the one that ends last."""

    __slots__ = ("calls", "wait_us")

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.calls: dict[int, Op] = {}
        self.wait_us = (self.config.shutdown_wait_ms - 1) * MS

    def takes(self, stretch: Stretch) -> bool:
        self._runs(stretch.last)
        return True

    def _runs(self, op: Op) -> None:
        last = self.calls.get(op.client)
        if last is None or op.end >= last.end:
            self.calls[op.client] = op

    def begins(self, op: Op) -> None:
        if op.client == NO_TEXT:
            return
        if op.kind is Kind.DELIVER:
            self._runs(op)
            return
        last = self.calls.get(op.client)
        if last is None:
            return
        self.stakes += 1
        cut = last.outcome is Outcome.CUT and last.incarnation != NO_TEXT and last.incarnation == op.incarnation
        if ended_before(last, op) and not cut:
            return
        left_us = self.context.left_us(self.lane.name(op.client), self.lane.group, self.now)
        waited = op.started - left_us >= self.wait_us
        if not waited and not self.client_died_since(op.client, last):
            self.found(last, op)


TWIN = Twin("LSE-15", OP_COLUMNS, machine_kernel(Lane, (Kind.UNLOCK, Kind.DELIVER), lease=False))
find = TWIN.find
