"""LSE-14 over columns: lock and unlock rows are few, so a machine per lane goes through them."""

from __future__ import annotations

from spark_checkers.grants import EXPIRED, Grants, LastGrant, answers
from spark_checkers.lanes import OP_COLUMNS, LaneItems, Machine, Op, machine_kernel
from spark_checkers.rows import MS, NEVER, NO_TEXT, Findings
from spark_checkers.twin import Twin
from specs.vocabulary import Kind, Outcome

EDGE_MS = 10


class Lane(Machine):
    """The grants that certainly live, and the last one."""

    __slots__ = ("edge_us", "grants", "last")

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.grants = Grants(self)
        self.last = LastGrant(self)
        self.edge_us = (self.config.broker_lease_ms - EDGE_MS) * MS

    def begins(self, op: Op) -> None:
        if op.kind is Kind.UNLOCK:
            self.grants.unlock_begins(op)
        else:
            self.last.lock_begins(op)

    def ends(self, op: Op) -> None:
        last = self.last
        if op.client == NO_TEXT:
            return
        if op.kind is Kind.UNLOCK:
            last.unlock_ends(op)
            return
        granted = op.outcome is Outcome.OK
        for lease in self.grants.contested_by(op):
            ended = lease.ended if lease.ended < NEVER else 0
            if op.started - ended >= self.edge_us:
                self.stakes += 1
                if granted:
                    self.found(lease, op, certain=self.one_clock)
            if granted:
                self.grants.over(lease)
        if answers(op) and last.why_free(op) == EXPIRED:
            self.stakes += 1
            if not granted:
                self.found(last.grant, op, certain=self.one_clock)
        if granted:
            last.granted(op)
        self.grants.lock_ends(op)


TWIN = Twin("LSE-14", OP_COLUMNS, machine_kernel(Lane, (Kind.LOCK, Kind.UNLOCK), lease=True))
find = TWIN.find
