"""Grants of one lane that certainly live: what the twins of several lease clauses share.

A grant lives until its owner's unlock may have reached the broker, until it is older than the broker's limit, or
until the broker crashed. An unlock that was not answered may be applied for a while yet.
"""

from __future__ import annotations

from spark_checkers.lanes import Machine, Op, ended_before
from spark_checkers.rows import MS, NEVER, NO_TEXT
from specs.vocabulary import Outcome


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
