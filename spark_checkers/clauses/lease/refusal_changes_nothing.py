"""LSE-7 over columns: lock and unlock rows are few, so a machine per lane goes through them."""

from __future__ import annotations

from spark_checkers.grants import EXPIRED, Grants, LastGrant, answers, refuses
from spark_checkers.lanes import OP_COLUMNS, LaneItems, Machine, Op, ended_before, machine_kernel
from spark_checkers.rows import NEVER, NO_TEXT, Findings
from spark_checkers.twin import Twin
from specs.vocabulary import Kind, Outcome


class Lane(Machine):
    """The grants that certainly live, the last one, and the last refusal."""

    __slots__ = ("grants", "last", "refusal")

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.grants = Grants(self)
        self.last = LastGrant(self)
        self.refusal: Op | None = None

    def begins(self, op: Op) -> None:
        if op.kind is Kind.UNLOCK:
            self.grants.unlock_begins(op)
        else:
            self.last.lock_begins(op)

    def _since(self, lease: Op, op: Op) -> Op | None:
        """The last refusal, if it is a stranger's and lies between grant and request."""
        refusal = self.refusal
        if refusal is None or refusal.client == lease.client:
            return None
        return refusal if ended_before(lease, refusal) and ended_before(refusal, op) else None

    def ends(self, op: Op) -> None:
        last = self.last
        if op.client == NO_TEXT:
            return
        if op.kind is Kind.UNLOCK:
            last.unlock_ends(op)
            return
        granted = op.outcome is Outcome.OK
        for lease in self.grants.contested_by(op):
            refusal = self._since(lease, op)
            if refusal is not None:
                self.stakes += 1
                if granted:
                    self.found(lease, refusal, op, certain=self.one_clock)
            if granted:
                self.grants.over(lease)
        if answers(op) and last.grant is not None and last.why_free(op) == EXPIRED:
            refusal = self._since(last.grant, op)
            if refusal is not None:
                ended = refusal.ended if refusal.ended < NEVER else 0
                if op.started - ended < last.limit_us:
                    self.stakes += 1
                    if not granted:
                        self.found(last.grant, refusal, op, certain=self.one_clock)
        if granted:
            last.granted(op)
        elif refuses(op):
            self.refusal = op
        self.grants.lock_ends(op)


TWIN = Twin("LSE-7", OP_COLUMNS, machine_kernel(Lane, (Kind.LOCK, Kind.UNLOCK), lease=True))
find = TWIN.find
