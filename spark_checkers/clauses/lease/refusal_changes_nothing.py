"""LSE-7 over columns: lock and unlock rows are few, so a machine per lane goes through them."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.findings import Findings
from spark_checkers.grants import EXPIRED, LeaseEndLane, refuses
from spark_checkers.lanes import OP_COLUMNS, LaneItems, Op, ended_before, machine_kernel
from spark_checkers.planting import ANOTHER, MS, STRANGER, Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.vocabulary import Kind, Outcome


class Lane(LeaseEndLane):
    """The last refusal."""

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.refusal: Op | None = None

    def _since(self, lease: Op, op: Op) -> Op | None:
        """The last refusal, if it is a stranger's and lies between grant and request."""
        refusal = self.refusal
        if refusal is None or refusal.client == lease.client:
            return None
        return refusal if ended_before(lease, refusal) and ended_before(refusal, op) else None

    def owned(self, op: Op, lease: Op) -> None:
        refusal = self._since(lease, op)
        if refusal is not None:
            self.at_stake(op, False, lease, refusal)

    def free(self, op: Op, grant: Op, why: str) -> None:
        refusal = self._since(grant, op)
        if refusal is None or why != EXPIRED:
            return
        if op.started - refusal.over_us + self.last.clocks_us < self.last.limit_us:
            self.at_stake(op, True, grant, refusal)

    def asked(self, op: Op) -> None:
        super().asked(op)
        if refuses(op):
            self.refusal = op


TWIN = Twin("LSE-7", OP_COLUMNS, machine_kernel(Lane, (Kind.LOCK, Kind.UNLOCK), lease=True))
find = TWIN.find


# ---- what breaks the clause, planted


def prolonged_by_a_refusal(trace: Trace) -> Changes:
    limit = (trace.info.config.broker_lease_ms + 1) * MS
    for lock in trace.of(Kind.LOCK):
        early, late = planting.later(trace, lock, limit // 2), planting.later(trace, lock, limit)
        if early is not None and late is not None and early.seq_begin < late.seq_begin:
            yield partial(
                lambda a, b, c: trace.with_more(
                    [
                        planting.elsewhere(trace, a, a, STRANGER, Outcome.OK),
                        planting.elsewhere(trace, a, b, ANOTHER, Outcome.REFUSED),
                        planting.elsewhere(trace, a, c, ANOTHER, Outcome.REFUSED),
                    ]
                ),
                lock,
                early,
                late,
            )


DEFECTS = (
    Mutant(
        "prolonged-lease",
        "LSE-7",
        "a refusal makes the owner's lease longer",
        prolonged_by_a_refusal,
    ),
)
