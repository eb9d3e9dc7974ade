"""Grants of one lane that certainly live: what several lease clauses conclude from LOCK and UNLOCK rows.

A grant is made somewhere between the request's begin and its answer. It lives until its owner's unlock may have
reached the broker, or until it is strictly older than the broker's limit, or until the broker crashed. An answered
unlock is over at its end; one that is one way or unanswered may be applied for a while yet, so a grant that was
asked for meanwhile is not certain.
"""

from __future__ import annotations

from specs.clauses.base import MS, Context, ended_before
from specs.history.row import Row
from specs.vocabulary import Outcome


class Unlocks:
    """Until when the unlocks of each client may still be applied, in µs."""

    __slots__ = ("delay_bound_us", "until")

    def __init__(self, context: Context) -> None:
        self.delay_bound_us = context.config.delay_bound_ms * MS
        self.until: dict[str, int] = {}

    def begins(self, row: Row) -> None:
        if row.client_id is None:
            return
        if row.outcome is Outcome.OK and row.ended_us is not None:
            until = row.ended_us
        else:
            until = (row.ended_us or row.started_us) + self.delay_bound_us
        self.until[row.client_id] = max(until, self.until.get(row.client_id, 0))

    def may_undo(self, lock: Row) -> bool:
        """May an unlock that began before the grant still be applied after it?"""
        return self.until.get(lock.client_id or "", -1) >= lock.started_us


class Grants:
    """The grants of one lane that certainly live, one per client."""

    __slots__ = ("alive", "context", "limit_us", "unlocks")

    def __init__(self, context: Context) -> None:
        self.context = context
        self.limit_us = context.config.broker_lease_ms * MS
        self.alive: dict[str, Row] = {}
        self.unlocks = Unlocks(context)

    def unlock_begins(self, row: Row) -> None:
        if row.client_id is not None:
            self.alive.pop(row.client_id, None)
            self.unlocks.begins(row)

    def contested_by(self, lock: Row) -> list[Row]:
        """Living grants of others for which the answer of `lock`, which ends now, is at stake."""
        contested: list[Row] = []
        if lock.ended_us is None:
            return contested
        for client, grant in list(self.alive.items()):
            if client == lock.client_id or not ended_before(grant, lock):
                continue
            age_us = lock.started_us - grant.started_us
            if age_us > self.limit_us or self.context.broker_died_since(lock.broker, grant):
                del self.alive[client]
            elif lock.outcome is not Outcome.UNKNOWN and lock.ended_us - grant.started_us <= self.limit_us:
                contested.append(grant)  # otherwise the grant may have run out while the request was under way
        return contested

    def lock_ends(self, lock: Row) -> None:
        """Remember the grant, if it certainly is one."""
        if lock.client_id is None or lock.outcome is not Outcome.OK:
            return
        if self.unlocks.may_undo(lock):
            self.alive.pop(lock.client_id, None)
        else:
            self.alive[lock.client_id] = lock

    def ends(self, grant: Row) -> None:
        """The grant turned out to be over."""
        self.alive.pop(grant.client_id or "", None)
