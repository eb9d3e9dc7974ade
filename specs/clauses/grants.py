"""Grants of one lane that certainly live: what several lease clauses conclude from LOCK and UNLOCK rows.

A grant is made somewhere between the request's begin and its answer. It lives until its owner's unlock may have
reached the broker, or until it is strictly older than the broker's limit, or until the broker crashed. An answered
unlock is over at its end; one that is one way or unanswered may be applied for a while yet, so a grant that was
asked for meanwhile is not certain.

`LastGrant` asks the opposite: does the last certain grant show that nobody could hold the lane against the asker?

`LastGrantJudge` and `LeaseEndJudge` go through a lane's rows with these; a clause says what it makes of an answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from specs.clauses.base import MS, NOTHING, Context, Finding, Judge, ended_before
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome


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


class Free(Enum):
    """Why a lane must be granted to the asker."""

    OWN = "the asker held it last"
    RELEASED = "its owner gave it back, and was told so"
    EXPIRED = "the last grant is strictly older than the limit"


class LastGrant:
    """The lane's last certain grant, its owner's answered unlock, and who else may have been granted it since.

    limit_us: a grant of this age has run out, in whole milliseconds of the broker's clock.
    """

    __slots__ = ("context", "delay_bound_us", "grant", "limit_us", "others", "unlock")

    def __init__(self, context: Context) -> None:
        self.context = context
        self.delay_bound_us = context.config.delay_bound_ms * MS
        self.limit_us = (context.config.broker_lease_ms + 1) * MS
        self.grant: Row | None = None
        self.unlock: Row | None = None
        self.others: list[Row] = []  # requests, other than the grant, that may have been applied after it

    def _applied_until(self, row: Row) -> int:
        """The last moment, in µs, at which the broker may have acted on the request."""
        if row.outcome is Outcome.OK and row.ended_us is not None:
            return row.ended_us
        return max(row.ended_us or 0, row.started_us + self.delay_bound_us)

    def lock_begins(self, row: Row) -> None:
        if not refuses(row):
            self.others.append(row)

    def unlock_ends(self, row: Row) -> None:
        """Only the owner's answered unlock of its last grant frees the lane for certain."""
        grant = self.grant
        if (
            row.outcome is Outcome.OK
            and grant is not None
            and row.client_id == grant.client_id
            and ended_before(grant, row)
        ):
            self.unlock = row

    def granted(self, row: Row) -> None:
        """The lane was granted. The grant before stays in question only when it may have been applied after this."""
        before = self.others if self.grant is None else [*self.others, self.grant]
        self.others = [each for each in before if each is not row and self._applied_until(each) >= row.started_us]
        self.grant, self.unlock = row, None

    def free_for(self, row: Row) -> Free | None:
        """Why the lock request `row`, which ends now, must be granted; None where that is not certain."""
        grant, unlock = self.grant, self.unlock
        if grant is None or not ended_before(grant, row) or self.context.broker_died_since(row.broker, grant):
            return None
        if self.context.frames_twice is not None:
            return None  # a grant's request that came twice may have renewed the lease after its answer
        if grant.client_id == row.client_id:
            why = Free.OWN
        elif unlock is not None and ended_before(unlock, row):
            why = Free.RELEASED
        elif row.started_us - (grant.ended_us or 0) >= self.limit_us:
            why = Free.EXPIRED
        else:
            return None
        for other in self.others:
            if other is row or other.client_id == row.client_id:
                continue
            of_owner = why is Free.RELEASED and other.client_id == grant.client_id
            since = unlock if of_owner and unlock is not None else grant
            if self._applied_until(other) >= since.started_us:
                return None
        return why


def refuses(row: Row) -> bool:
    """Did the broker refuse the lease? An error code says nothing about the lane."""
    return row.outcome is Outcome.REFUSED and not row.code


class LastGrantJudge(Judge):
    """Remembers the lane's last grant, and what may have happened to it since."""

    __slots__ = ("last",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.last = LastGrant(context)

    def free(self, row: Row, grant: Row, why: Free) -> Iterable[Finding]:
        """A lock request was answered, granted or refused, for a lane that was certainly free for the asker.

        grant: the lane's last.
        """
        return NOTHING

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.LOCK:
            self.last.lock_begins(row)
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.client_id is None:
            return NOTHING
        if row.kind is Kind.UNLOCK:
            self.last.unlock_ends(row)
            return NOTHING
        found = self.asked(row)
        if row.outcome is Outcome.OK:
            self.last.granted(row)
        return found

    def asked(self, row: Row) -> Iterable[Finding]:
        """A client's lock request ended."""
        if row.outcome is Outcome.OK or refuses(row):
            why, grant = self.last.free_for(row), self.last.grant
            if why is not None and grant is not None:
                return self.free(row, grant, why)
        return NOTHING


class LeaseEndJudge(LastGrantJudge):
    """Remembers the grants that certainly live as well: both sides of the end of a lease."""

    __slots__ = ("grants",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.grants = Grants(context)

    def owned(self, row: Row, lease: Row) -> Iterable[Finding]:
        """A lock request was answered, granted or refused, while somebody else's grant certainly lived."""
        return NOTHING

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.UNLOCK:
            self.grants.unlock_begins(row)
        return super().begins(row)

    def asked(self, row: Row) -> Iterable[Finding]:
        found: list[Finding] = []
        for lease in self.grants.contested_by(row):
            found += self.owned(row, lease)
            if row.outcome is Outcome.OK:
                self.grants.ends(lease)
        found += super().asked(row)
        self.grants.lock_ends(row)
        return found
