"""LSE-14 over columns: lock and unlock rows are few, so a machine per lane goes through them."""

from __future__ import annotations

from spark_checkers.grants import EXPIRED, LeaseEndLane
from spark_checkers.lanes import OP_COLUMNS, LaneItems, Op, ended_before, machine_kernel
from spark_checkers.rows import MS, NEVER, Findings
from spark_checkers.twin import Twin
from specs.vocabulary import Kind

EDGE_MS = 10


class Lane(LeaseEndLane):
    """The last moments of an owner's lease, and the first ones after it."""

    __slots__ = ("edge_us",)

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.edge_us = (self.config.broker_lease_ms - EDGE_MS) * MS

    def owned(self, op: Op, lease: Op) -> None:
        ended = lease.ended if lease.ended < NEVER else 0
        if ended_before(lease, op) and op.started - ended >= self.edge_us:
            self.at_stake(op, False, lease)

    def free(self, op: Op, grant: Op, why: str) -> None:
        if why == EXPIRED:
            self.at_stake(op, True, grant)


TWIN = Twin("LSE-14", OP_COLUMNS, machine_kernel(Lane, (Kind.LOCK, Kind.UNLOCK), lease=True))
find = TWIN.find
