"""LSE-4 over columns: lock and unlock rows are few, so a machine per lane goes through them."""

from __future__ import annotations

from spark_checkers.lanes import OP_COLUMNS, LaneItems, Machine, Op, ended_before, machine_kernel
from spark_checkers.rows import MS, NEVER, NO_TEXT, NONE, Findings
from spark_checkers.twin import Twin
from specs.vocabulary import Kind, Outcome


def _refuses(op: Op) -> bool:
    """A refusal of the lease; an error code says nothing about the lane."""
    return op.outcome is Outcome.REFUSED and op.code in (0, NONE)


class Lane(Machine):
    """The last grant, its owner's unlock, and requests that may have taken the lane since."""

    __slots__ = ("bound_us", "grant", "limit_us", "others", "unlock")

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.bound_us = self.config.delay_bound_ms * MS
        self.limit_us = (self.config.broker_lease_ms + 1) * MS
        self.grant: Op | None = None
        self.unlock: Op | None = None
        self.others: list[Op] = []

    def begins(self, op: Op) -> None:
        if op.kind is Kind.LOCK and not _refuses(op):
            self.others.append(op)

    def ends(self, op: Op) -> None:
        if op.client == NO_TEXT:
            return
        if op.kind is Kind.UNLOCK:
            grant = self.grant
            owners = grant is not None and op.client == grant.client and ended_before(grant, op)
            if owners and op.outcome is Outcome.OK:
                self.unlock = op
            return
        granted = op.outcome is Outcome.OK
        if (granted or _refuses(op)) and self._must_be_granted(op):
            self.stakes += 1
            if not granted:
                own = self.grant is not None and self.grant.client == op.client
                released = not own and self.unlock is not None and ended_before(self.unlock, op)
                self.found(self.grant, self.unlock if released else None, op, certain=self.one_clock)
        if granted:
            before = [*self.others] if self.grant is None else [*self.others, self.grant]
            self.others = [each for each in before if each.place != op.place and self._until(each) >= op.started]
            self.grant, self.unlock = op, None

    def _until(self, op: Op) -> int:
        """The last moment at which the broker may have acted on the request, in µs."""
        if op.outcome is Outcome.OK and op.ended < NEVER:
            return op.ended
        return max(op.ended if op.ended < NEVER else 0, op.started + self.bound_us)

    def _must_be_granted(self, op: Op) -> bool:
        """Does the last grant show that nobody could hold the lane against the asker?"""
        grant, unlock = self.grant, self.unlock
        if grant is None or not ended_before(grant, op) or self.broker_died_since(grant):
            return False
        own = grant.client == op.client
        released = not own and unlock is not None and ended_before(unlock, op)
        ended = grant.ended if grant.ended < NEVER else 0
        if not (own or released or op.started - ended >= self.limit_us):
            return False
        for other in self.others:
            if other.place == op.place or other.client == op.client:
                continue
            of_owner = released and other.client == grant.client
            since = unlock.started if of_owner and unlock is not None else grant.started
            if self._until(other) >= since:
                return False
        return True


TWIN = Twin("LSE-4", OP_COLUMNS, machine_kernel(Lane, (Kind.LOCK, Kind.UNLOCK), lease=True))
find = TWIN.find
