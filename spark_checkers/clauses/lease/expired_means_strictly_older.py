"""LSE-14 over columns: lock and unlock rows are few, so a machine per lane goes through them."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import ANOTHER, STRANGER, Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.grants import EXPIRED, LeaseEndLane
from specs.facts.lanes import OP_COLUMNS, LaneItems, Op, ended_before, machine_kernel
from specs.facts.segments import MS
from specs.vocabulary import Kind, Outcome

EDGE_MS = 10


class Lane(LeaseEndLane):
    """The last moments of an owner's lease, and the first ones after it."""

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.edge_us = (self.config.broker_lease_ms - EDGE_MS) * MS

    def owned(self, op: Op, lease: Op) -> None:
        if ended_before(lease, op) and op.started - lease.ended >= self.edge_us:
            self.at_stake(op, False, lease)

    def free(self, op: Op, grant: Op, why: str) -> None:
        if why == EXPIRED:
            self.at_stake(op, True, grant)


TWIN = Twin("LSE-14", OP_COLUMNS, machine_kernel(Lane, (Kind.LOCK, Kind.UNLOCK), lease=True))
find = TWIN.find


# ---- what breaks the clause, planted


def outlived_lease(trace: Trace) -> Changes:
    limit = (trace.info.config.broker_lease_ms + 1) * MS
    for lock in trace.of(Kind.LOCK):
        late = planting.later(trace, lock, limit)
        if late is not None:
            yield partial(
                lambda a, b: trace.with_more(
                    [
                        planting.elsewhere(trace, a, a, STRANGER, Outcome.OK),
                        planting.elsewhere(trace, a, b, ANOTHER, Outcome.REFUSED),
                    ]
                ),
                lock,
                late,
            )


DEFECTS = (
    Mutant("outlived-lease", "LSE-14", "a lease lives on when its time is over", outlived_lease),
)
