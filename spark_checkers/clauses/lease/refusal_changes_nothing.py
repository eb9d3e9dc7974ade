"""LSE-7 over columns: lock and unlock rows are few, so a machine per lane goes through them."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import ANOTHER, MS, STRANGER, Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.grants import EXPIRED, LeaseEndLane, refuses
from specs.facts.lanes import OP_COLUMNS, LaneItems, Op, ended_before, machine_kernel
from specs.vocabulary import Kind, Outcome


class Lane(LeaseEndLane):
    """The last refusal of the lane while it was certainly owned, and the lease that it met."""

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.met: dict[int, tuple[Op, Op]] = {}  # by owner
        self.given_back: set[int] = set()  # by whom, since its last grant

    def _culprit(self, lease: Op, op: Op) -> Op | None:
        """The last refusal that met this lease, if it was answered before the request."""
        met, refusal = self.met.get(lease.client, (None, None))
        if met is None or refusal is None or met.place != lease.place:
            return None
        return refusal if ended_before(refusal, op) else None

    def begins(self, op: Op) -> None:
        super().begins(op)
        if op.kind is Kind.UNLOCK:
            self.given_back.add(op.client)

    def owned(self, op: Op, lease: Op) -> None:
        refusal = self._culprit(lease, op)
        if refusal is not None:
            self.at_stake(op, False, lease, refusal)
        if refuses(op) and ended_before(lease, op):
            self.met[lease.client] = lease, op

    def free(self, op: Op, grant: Op, why: str) -> None:
        refusal = self._culprit(grant, op)
        if refusal is None or why != EXPIRED or grant.client in self.given_back:
            return
        if op.started - refusal.over_us + self.last.clocks_us < self.last.limit_us:
            self.at_stake(op, True, grant, refusal)

    def asked(self, op: Op) -> None:
        super().asked(op)
        if op.outcome is Outcome.OK:
            self.given_back.discard(op.client)


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
