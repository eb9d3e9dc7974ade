"""Grants of one lane that certainly live: what the twins of several lease clauses share.

A grant lives until its owner's unlock may have reached the broker, until it is older than the broker's limit, or
until the broker crashed. An unlock that was not answered may be applied for a while yet. `LastGrant` turns the
question round: must the asker be granted the lane?
"""

from __future__ import annotations

from spark_checkers.lanes import LaneItems, Machine, Op, ended_before
from spark_checkers.rows import MS, NEVER, NO_TEXT, NONE, Findings
from specs.vocabulary import Kind, Outcome


class Unlocks:
    """Until when (µs) the unlocks of each client may still be applied."""

    __slots__ = ("bound_us", "until")

    def __init__(self, machine: Machine) -> None:
        self.bound_us = machine.config.delay_bound_ms * MS
        self.until: dict[int, int] = {}

    def add(self, op: Op) -> None:
        closed = op.ended < NEVER
        if op.outcome is Outcome.OK and closed:
            until = op.ended
        else:
            until = (op.ended if closed and op.ended else op.started) + self.bound_us
        self.until[op.client] = max(until, self.until.get(op.client, 0))

    def may_undo(self, lock: Op) -> bool:
        return self.until.get(lock.client, -1) >= lock.started


class Grants:
    """The living grants, one per client."""

    __slots__ = ("alive", "limit_us", "machine", "unlocks")

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.limit_us = machine.config.broker_lease_ms * MS
        self.alive: dict[int, Op] = {}
        self.unlocks = Unlocks(machine)

    def unlock_begins(self, op: Op) -> None:
        if op.client != NO_TEXT:
            self.alive.pop(op.client, None)
            self.unlocks.add(op)

    def contested_by(self, lock: Op) -> list[Op]:
        """The grants of others that live through the whole request `lock`, whose answer has just come."""
        contested: list[Op] = []
        if lock.ended >= NEVER:
            return contested
        for grant in list(self.alive.values()):
            if grant.client == lock.client or not ended_before(grant, lock):
                continue
            if lock.started - grant.started > self.limit_us or self.machine.broker_died_since(grant):
                del self.alive[grant.client]
            elif lock.outcome is not Outcome.UNKNOWN and lock.ended - grant.started <= self.limit_us:
                contested.append(grant)
        return contested

    def lock_ends(self, lock: Op) -> None:
        if lock.client == NO_TEXT or lock.outcome is not Outcome.OK:
            return
        if self.unlocks.may_undo(lock):
            self.alive.pop(lock.client, None)
        else:
            self.alive[lock.client] = lock

    def over(self, grant: Op) -> None:
        self.alive.pop(grant.client, None)


OWN, RELEASED, EXPIRED = "own", "released", "expired"
"""Why a lane must be granted."""


class LastGrant:
    """The last grant, its owner's unlock, and requests that may have taken the lane since."""

    __slots__ = ("bound_us", "grant", "limit_us", "machine", "others", "unlock")

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.bound_us = machine.config.delay_bound_ms * MS
        self.limit_us = (machine.config.broker_lease_ms + 1) * MS
        self.grant: Op | None = None
        self.unlock: Op | None = None
        self.others: list[Op] = []

    def lock_begins(self, op: Op) -> None:
        if not refuses(op):
            self.others.append(op)

    def unlock_ends(self, op: Op) -> None:
        grant = self.grant
        owners = grant is not None and op.client == grant.client and ended_before(grant, op)
        if owners and op.outcome is Outcome.OK:
            self.unlock = op

    def granted(self, op: Op) -> None:
        before = [*self.others] if self.grant is None else [*self.others, self.grant]
        self.others = [each for each in before if each.place != op.place and self._until(each) >= op.started]
        self.grant, self.unlock = op, None

    def _until(self, op: Op) -> int:
        """The last moment at which the broker may have acted on the request, in µs."""
        if op.outcome is Outcome.OK and op.ended < NEVER:
            return op.ended
        return max(op.ended if op.ended < NEVER else 0, op.started + self.bound_us)

    def why_free(self, op: Op) -> str:
        """Why the request must be granted; empty where the last grant does not show that nobody else has the lane."""
        grant, unlock = self.grant, self.unlock
        if grant is None or not ended_before(grant, op) or self.machine.broker_died_since(grant):
            return ""
        if self.machine.context.frames_twice <= self.machine.now:
            return ""
        own = grant.client == op.client
        released = not own and unlock is not None and ended_before(unlock, op)
        ended = grant.ended if grant.ended < NEVER else 0
        if not (own or released or op.started - ended >= self.limit_us):
            return ""
        for other in self.others:
            if other.place == op.place or other.client == op.client:
                continue
            of_owner = released and other.client == grant.client
            since = unlock.started if of_owner and unlock is not None else grant.started
            if self._until(other) >= since:
                return ""
        return OWN if own else RELEASED if released else EXPIRED


class LastGrantLane(Machine):
    """Goes through a lane's lock and unlock rows, and knows its last grant."""

    __slots__ = ("last",)

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.last = LastGrant(self)

    def free(self, op: Op, grant: Op, why: str) -> None:
        """A request was answered for a lane that was certainly free for the asker."""

    def begins(self, op: Op) -> None:
        if op.kind is Kind.LOCK:
            self.last.lock_begins(op)

    def ends(self, op: Op) -> None:
        if op.client == NO_TEXT:
            return
        if op.kind is Kind.UNLOCK:
            self.last.unlock_ends(op)
            return
        self.asked(op)
        if op.outcome is Outcome.OK:
            self.last.granted(op)

    def asked(self, op: Op) -> None:
        """A client's request ended."""
        grant = self.last.grant
        if grant is not None and answers(op) and (why := self.last.why_free(op)):
            self.free(op, grant, why)

    def at_stake(self, op: Op, wanted: bool, *evidence: Op | None) -> None:
        """Counts it, and finds the evidence where the request was not answered as wanted: granted, or not."""
        self.stakes += 1
        if (op.outcome is Outcome.OK) != wanted:
            self.found(*evidence, op)


class LeaseEndLane(LastGrantLane):
    """Knows the grants that certainly live as well."""

    __slots__ = ("grants",)

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.grants = Grants(self)

    def owned(self, op: Op, lease: Op) -> None:
        """A request was answered while somebody else's grant certainly lived."""

    def begins(self, op: Op) -> None:
        if op.kind is Kind.UNLOCK:
            self.grants.unlock_begins(op)
        super().begins(op)

    def asked(self, op: Op) -> None:
        for lease in self.grants.contested_by(op):
            self.owned(op, lease)
            if op.outcome is Outcome.OK:
                self.grants.over(lease)
        super().asked(op)
        self.grants.lock_ends(op)


def answers(op: Op) -> bool:
    """Does the answer say whether the lane was granted?"""
    return op.outcome is Outcome.OK or refuses(op)


def refuses(op: Op) -> bool:
    """A refusal of the lease; an error code says nothing about the lane."""
    return op.outcome is Outcome.REFUSED and op.code in (0, NONE)
