"""Grants of one lane that certainly live: what several lease clauses conclude from LOCK and UNLOCK rows.

A grant is made somewhere between the request's begin and its answer. It lives until its owner's unlock may have
reached the broker, or until it is strictly older than the broker's limit, or until the broker crashed. An answered
unlock is over at its end; one that is one way or unanswered may be applied for a while yet (how long, says
`specs.clauses.links`), so a grant that was asked for meanwhile is not certain.

`LastGrant` asks the opposite: is it certain that nobody holds the lane against the asker? By the last certain grant,
or because the broker began with an empty table and nobody else has asked for the lane since.

Ages are compared over the rows of several parties: each comparison keeps the bound between their clocks in hand.

`LastGrantJudge` and `LeaseEndJudge` go through a lane's rows with these; a clause says what it makes of an answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import Premise
from specs.clauses.rows import ended_before, over_us
from specs.clauses.words import MS
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome

UNHINDERED = Premise(
    "unhindered",
    "a request arrives within its time, unless a fault of its link or a pause stood in its way; a recorded one puts "
    "off until when it may be applied",
)


class Unlocks:
    """Until when the unlocks of each client may still be applied, in µs.

    unanswered: of each client, since the first that may still be on its way: that one, and when the last one would
    have arrived over a link at work.
    """

    __slots__ = ("answered", "context", "delay_bound_us", "unanswered")

    def __init__(self, context: Context) -> None:
        self.context = context
        self.delay_bound_us = context.config.delay_bound_ms * MS
        self.answered: dict[str, int] = {}
        self.unanswered: dict[str, tuple[Row, int]] = {}

    def begins(self, row: Row) -> None:
        client = row.client_id
        if client is None:
            return
        if row.outcome is Outcome.OK and row.ended_us is not None:
            self.answered[client] = max(row.ended_us, self.answered.get(client, 0))
            return
        until_us = over_us(row) + self.delay_bound_us
        first, before_us = self.unanswered.get(client, (row, until_us))
        if self.context.may_arrive_until(first, before_us) < row.started_us:
            first = row
        self.unanswered[client] = first, max(until_us, before_us)

    def has_of(self, client: str | None) -> bool:
        """Has the client ever asked to give the lane back?"""
        return client in self.answered or client in self.unanswered

    def may_undo(self, lock: Row) -> bool:
        """May an unlock that began before the grant still be applied after it?

        Where a link made two frames of one, the second one may come after the answer to the first.
        """
        client = lock.client_id or ""
        if client in self.answered:
            copy_us = 0 if self.context.frames_twice is None else self.delay_bound_us
            if self.answered[client] + copy_us >= lock.started_us:
                return True
        if client not in self.unanswered:
            return False
        return self.context.may_arrive_until(*self.unanswered[client]) >= lock.started_us


class Grants:
    """The grants of one lane that certainly live, one per client."""

    __slots__ = ("alive", "bound_us", "context", "limit_us", "unlocks")

    def __init__(self, context: Context) -> None:
        self.context = context
        self.limit_us = context.config.broker_lease_ms * MS
        self.bound_us = context.info.clock_bound_us
        self.alive: dict[str, Row] = {}
        self.unlocks = Unlocks(context)

    def unlock_begins(self, row: Row) -> None:
        if row.client_id is not None:
            self.alive.pop(row.client_id, None)
            self.unlocks.begins(row)

    def contested_by(self, lock: Row) -> list[Row]:
        """Living grants of others for which the answer of `lock`, which ends now, is at stake.

        The two requests may have been under way together. Then nobody knows which was granted first, and it does
        not matter: there is no moment between them at which the earlier one was over.
        """
        contested: list[Row] = []
        if lock.ended_us is None:
            return contested
        for client, grant in list(self.alive.items()):
            if client == lock.client_id:
                continue
            age_us = lock.started_us - grant.started_us - self.bound_us
            if age_us > self.limit_us or self.context.broker_died_since(lock.broker, grant):
                del self.alive[client]
            elif lock.outcome is not Outcome.UNKNOWN and self._meet(grant, lock):
                contested.append(grant)
        return contested

    def _meet(self, grant: Row, lock: Row) -> bool:
        """Was the later of the two, whichever it is, certainly made in the lifetime of the earlier one?"""
        latest_us = max(over_us(lock), over_us(grant))
        if latest_us - min(lock.started_us, grant.started_us) + self.bound_us > self.limit_us:
            return False  # it may have run out while the request was under way
        if ended_before(grant, lock):
            return True
        return not self.unlocks.may_undo(lock) and not self.context.broker_died_since(
            lock.broker, lock
        )

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
    RELEASED = "its owner gave it back, which certainly reached the broker"
    EXPIRED = "the last grant is strictly older than the limit"
    EMPTY = "the broker began with an empty table, and nobody else has asked since"


class LastGrant:
    """The lane's last certain grant, its owner's unlocks since, and who else may have been granted it.

    limit_us: a grant of this age has run out, in whole milliseconds of the broker's clock. freed_by: the unlock that
    freed the lane, or the row since which the table was empty; of the last answer to `free_for`.
    """

    __slots__ = (
        "bound_us",
        "context",
        "delay_bound_us",
        "first",
        "freed_by",
        "grant",
        "limit_us",
        "others",
        "sent",
        "unlock",
    )

    def __init__(self, context: Context) -> None:
        self.context = context
        self.delay_bound_us = context.config.delay_bound_ms * MS
        self.bound_us = context.info.clock_bound_us
        self.first: Row | None = None  # the lane's first request
        self.limit_us = (context.config.broker_lease_ms + 1) * MS
        self.grant: Row | None = None
        self.unlock: Row | None = None  # answered
        self.sent: Row | None = None  # one way
        self.freed_by: Row | None = None
        self.others: list[
            Row
        ] = []  # requests, other than the grant, that may have been applied after it

    def _applied_until(self, row: Row) -> int:
        """The last moment, in µs, at which the broker may have acted on the request."""
        if row.outcome is Outcome.OK and row.ended_us is not None:
            return row.ended_us
        until_us = max(over_us(row), row.started_us + self.delay_bound_us)
        return self.context.may_arrive_until(row, until_us)

    def lock_begins(self, row: Row) -> None:
        self.first = self.first or row
        if not refuses(row):
            self.others.append(row)

    def unlock_ends(self, row: Row) -> None:
        """Only an unlock by the owner of the last grant frees the lane for certain, and only if it arrived."""
        grant = self.grant
        if grant is None or row.client_id != grant.client_id or not ended_before(grant, row):
            return
        if row.outcome is Outcome.OK:
            self.unlock = row
        elif row.outcome is Outcome.SENT:
            self.sent = row

    def granted(self, row: Row) -> None:
        """The lane was granted. The grant before stays in question only when it may have been applied after this."""
        before = self.others if self.grant is None else [*self.others, self.grant]
        since_us = row.started_us - self.bound_us
        self.others = [
            each for each in before if each is not row and self._applied_until(each) >= since_us
        ]
        self.grant, self.unlock, self.sent = row, None, None

    def free_for(self, row: Row) -> Free | None:
        """Why the lock request `row`, which ends now, must be granted; None where that is not certain."""
        self.freed_by = None
        if self.context.frames_twice is not None:
            return None  # a grant's request that came twice may have renewed the lease after its answer
        grant = self.grant
        if grant is None or self.context.broker_died_since(row.broker, grant):
            self.freed_by = self._empty_since(row)
            return None if self.freed_by is None else Free.EMPTY
        if not ended_before(grant, row):
            return None
        unlock = self.arrived(row)
        if grant.client_id == row.client_id:
            why = Free.OWN
        elif unlock is not None:
            why, self.freed_by = Free.RELEASED, unlock
        elif row.started_us - over_us(grant) - self.bound_us >= self.limit_us:
            why = Free.EXPIRED
        else:
            return None
        owner_since_us = grant.started_us if self.freed_by is None else self.freed_by.started_us
        if any(
            self._may_hold(
                each, row, owner_since_us if each.client_id == grant.client_id else grant.started_us
            )
            for each in self.others
        ):
            return None
        return why

    def _may_hold(self, other: Row, asker: Row, since_us: int | None) -> bool:
        """May somebody else's request have been granted since then (or ever), and live when the asker asks?"""
        if other is asker or other.client_id == asker.client_id:
            return False
        until_us = self._applied_until(other)
        return (
            since_us is None or until_us + self.bound_us >= since_us
        ) and asker.started_us - until_us - self.bound_us < self.limit_us

    def arrived(self, row: Row) -> Row | None:
        """The owner's unlock that was certainly applied before the request began."""
        if self.unlock is not None and ended_before(self.unlock, row):
            return self.unlock
        sent, context = self.sent, self.context
        if sent is None or not context.info.closed_world:
            return None
        until_us = over_us(sent) + self.delay_bound_us
        if row.started_us - self.bound_us <= until_us or context.client_died_since(
            sent.client_id, sent
        ):
            return None
        return None if context.is_disturbed(sent, until_us) else sent

    def _empty_since(self, row: Row) -> Row | None:
        """What shows that the table was empty, where nobody but the asker may have been granted the lane since.

        A crash of the broker; or the last grant itself, where the answer names a later epoch. Where no grant was
        ever seen, the lane's first request: what was granted before it has run out; or, sooner, the begin of the
        asker's membership. Only where everybody is recorded.
        """
        context, grant = self.context, self.grant
        if not context.info.closed_world or row.client_id is None:
            return None
        crash = next(reversed(context.broker_deaths.get(row.broker or "", ())), None)
        since: Row | None = None
        if crash is not None and (grant is None or crash.seq_begin > grant.seq_begin):
            since = crash if crash.seq_begin < row.seq_begin else None
        elif grant is None:
            since = self._before_all_grants(row)
        elif row.broker_epoch is not None and grant.broker_epoch is not None:
            since = (
                grant
                if row.broker_epoch > grant.broker_epoch and ended_before(grant, row)
                else None
            )
        if since is None:
            return None
        since_us = since.started_us if since.kind is Kind.CRASH or since is grant else None
        others = self.others
        if (
            grant is not None and since.kind is Kind.CRASH
        ):  # answered after it, it may be of after it
            others = [*others, grant]
        return None if any(self._may_hold(each, row, since_us) for each in others) else since

    def _before_all_grants(self, row: Row) -> Row | None:
        first, over_us = self.first, self.limit_us + self.delay_bound_us + self.bound_us
        if first is not None and row.started_us - first.started_us >= over_us:
            return first
        return self.context.members.get(row.group or "", {}).get(row.client_id or "")


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

    def empty(self, row: Row, since: Row) -> Iterable[Finding]:
        """Likewise, and the table was empty since that row: see `LastGrant`."""
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
            if why is Free.EMPTY and self.last.freed_by is not None:
                return self.empty(row, self.last.freed_by)
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
