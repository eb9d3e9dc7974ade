"""Grants of one lane that certainly live: what several lease clauses conclude from LOCK and UNLOCK rows.

A grant is made somewhere between the request's begin and its answer. It lives until its owner's unlock may have
reached the broker, or until it is strictly older than the broker's limit, or until the broker crashed. An answered
unlock is over at its end; one that is one way or unanswered may be applied for a while yet (how long, says
`specs.clauses.links`), so a grant that was asked for meanwhile is not certain.

`LastGrant` asks the opposite: is it certain that nobody holds the lane against the asker? By the last certain grant,
or because the broker began with an empty table and nobody else has asked for the lane since.

Ages are compared over the rows of several parties: each comparison keeps the bound between their clocks in hand.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from specs.facts.findings import Findings
from specs.facts.lanes import LaneItems, Machine, Op, ended_before
from specs.facts.segments import MS, NEVER, NO_TEXT, NONE
from specs.vocabulary import Kind, Outcome


class _OnTheWay(NamedTuple):
    """Unlocks of one client that may not have arrived: the first one, and until when the last would without trouble."""

    first: Op
    until: int


class Unlocks:
    """Until when (µs) the unlocks of each client may still be applied."""

    __slots__ = ("bound_us", "machine", "until", "waiting")

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.bound_us = machine.config.delay_bound_ms * MS
        self.until: dict[int, int] = {}
        self.waiting: dict[int, _OnTheWay] = {}

    def add(self, op: Op) -> None:
        if op.outcome is Outcome.OK and op.ended < NEVER:
            self.until[op.client] = max(op.ended, self.until.get(op.client, 0))
            return
        until = op.over_us + self.bound_us
        before = self.waiting.get(op.client)
        if before is None:
            self.waiting[op.client] = _OnTheWay(op, until)
        elif self._latest(before) < op.started:
            self.waiting[op.client] = _OnTheWay(op, max(until, before.until))
        else:
            self.waiting[op.client] = _OnTheWay(before.first, max(until, before.until))

    def _latest(self, unlocks: _OnTheWay) -> int:
        machine = self.machine
        return machine.context.may_arrive_until(
            machine.sending(unlocks.first), unlocks.until, machine.now
        )

    def has_of(self, client: int) -> bool:
        """Has the client ever asked to give the lane back?"""
        return client in self.until or client in self.waiting

    def may_undo(self, lock: Op) -> bool:
        """May an unlock that began before the grant still be applied after it?"""
        waiting = self.waiting.get(lock.client)
        if waiting is not None and self._latest(waiting) >= lock.started:
            return True
        answered = self.until.get(lock.client, NONE)
        if answered == NONE:
            return False
        # A frame that came twice may be the unlock's, and the second one come late.
        twice = self.machine.context.frames_twice <= self.machine.now
        return lock.started <= (answered + self.bound_us if twice else answered)


class Grants:
    """The living grants, one per client."""

    __slots__ = ("alive", "clocks_us", "limit_us", "machine", "unlocks")

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.limit_us = machine.config.broker_lease_ms * MS
        self.clocks_us = machine.context.info.clock_bound_us
        self.alive: dict[int, Op] = {}
        self.unlocks = Unlocks(machine)

    def unlock_begins(self, op: Op) -> None:
        if op.client != NO_TEXT:
            self.alive.pop(op.client, None)
            self.unlocks.add(op)

    def contested_by(self, lock: Op) -> list[Op]:
        """The grants of others that `lock`, whose answer has just come, would certainly have met alive.

        The two requests may have been under way together. Then nobody knows which was granted first, and it does not
        matter: there is no moment between them at which the earlier one was over.
        """
        if lock.ended >= NEVER:
            return []
        contested: list[Op] = []
        for grant in [each for each in self.alive.values() if each.client != lock.client]:
            too_old = lock.started - grant.started - self.clocks_us > self.limit_us
            if too_old or self.machine.broker_died_since(grant):
                self.over(grant)
            elif lock.outcome is not Outcome.UNKNOWN and self._both_live(grant, lock):
                contested.append(grant)
        return contested

    def _both_live(self, grant: Op, lock: Op) -> bool:
        span = max(grant.ended, lock.ended) - min(grant.started, lock.started)
        if span + self.clocks_us > self.limit_us:
            return False
        # Of two that overlap either may be the first: then nothing may have ended the other one either.
        together = not ended_before(grant, lock)
        return not (
            together and (self.machine.broker_died_since(lock) or self.unlocks.may_undo(lock))
        )

    def lock_ends(self, lock: Op) -> None:
        if lock.client == NO_TEXT or lock.outcome is not Outcome.OK:
            return
        if self.unlocks.may_undo(lock):
            self.alive.pop(lock.client, None)
        else:
            self.alive[lock.client] = lock

    def over(self, grant: Op) -> None:
        """The grant turned out to be over."""
        self.alive.pop(grant.client, None)


OWN, RELEASED, EXPIRED = "own", "released", "expired"
"""Why a lane must be granted: the asker held it last, its owner gave it back, or its lease has run out."""


class Since(NamedTuple):
    """What shows that nobody can hold a lane: the broker's crash or the asker's join, by its seq, or a request."""

    kind: Kind
    seq: int
    request: Op | None = None


class LastGrant:
    """The last grant, its owner's unlocks, and requests that may have taken the lane since.

    released: the unlock that freed the lane, where `why_free` says so.
    """

    __slots__ = (
        "bound_us",
        "clocks_us",
        "first",
        "grant",
        "limit_us",
        "machine",
        "others",
        "released",
        "sent",
        "unlock",
    )

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.bound_us = machine.config.delay_bound_ms * MS
        self.clocks_us = machine.context.info.clock_bound_us
        self.limit_us = (machine.config.broker_lease_ms + 1) * MS
        self.first: Op | None = None
        self.grant: Op | None = None
        self.unlock: Op | None = None
        self.sent: Op | None = None
        self.released: Op | None = None
        self.others: list[Op] = []

    def lock_begins(self, op: Op) -> None:
        if self.first is None:
            self.first = op
        if not refuses(op):
            self.others.append(op)

    def unlock_ends(self, op: Op) -> None:
        grant = self.grant
        if grant is None or op.client != grant.client or not ended_before(grant, op):
            return
        if op.outcome is Outcome.OK:
            self.unlock = op
        elif op.outcome is Outcome.SENT:
            self.sent = op

    def granted(self, op: Op) -> None:
        before = [*self.others] if self.grant is None else [*self.others, self.grant]
        self.others = [
            each for each in before if each.place != op.place and self._reaches(each, op.started)
        ]
        self.grant, self.unlock, self.sent = op, None, None

    def _until(self, op: Op) -> int:
        """The last moment at which the broker may have acted on the request, in µs."""
        if op.outcome is Outcome.OK and op.ended < NEVER:
            return op.ended
        until = max(op.over_us, op.started + self.bound_us)
        return self.machine.context.may_arrive_until(
            self.machine.sending(op), until, self.machine.now
        )

    def _reaches(self, op: Op, since: int) -> bool:
        """May the broker have acted on the request at this moment, or later?"""
        return self._until(op) + self.clocks_us >= since

    def _nobody_else(
        self,
        asker: Op,
        since: int = NONE,
        owner: int = NO_TEXT,
        owner_since: int = NONE,
        also: Iterable[Op] = (),
    ) -> bool:
        """Nobody but the asker may hold the lane by a grant since then, or ever.

        owner_since: likewise of the owner. also: further requests that may have been granted since.
        """
        return not any(
            self._reaches(each, owner_since if each.client == owner else since)
            and asker.started - self._until(each) - self.clocks_us < self.limit_us
            for each in (*self.others, *also)
            if each.place != asker.place and each.client != asker.client
        )

    def why_free(self, op: Op) -> str:
        """Why the request must be granted; empty where the last grant does not show that nobody else has the lane."""
        grant = self.grant
        if grant is None or not ended_before(grant, op) or self.machine.broker_died_since(grant):
            return ""
        if self.machine.context.frames_twice <= self.machine.now:
            return ""
        own = grant.client == op.client
        self.released = None if own else self.arrived(op)
        over = op.started - grant.over_us - self.clocks_us >= self.limit_us
        if not (own or self.released is not None or over):
            return ""
        owner_since = grant.started if self.released is None else self.released.started
        if not self._nobody_else(op, grant.started, grant.client, owner_since):
            return ""
        return OWN if own else EXPIRED if self.released is None else RELEASED

    def arrived(self, op: Op) -> Op | None:
        """The owner's unlock that had certainly arrived when the request began."""
        unlock, sent, machine = self.unlock, self.sent, self.machine
        if unlock is not None and ended_before(unlock, op):
            return unlock
        if sent is None or not machine.context.info.closed_world:
            return None
        until = sent.over_us + self.bound_us
        if op.started - self.clocks_us <= until or machine.client_died_since(sent.client, sent):
            return None
        return (
            None
            if machine.context.is_disturbed(machine.sending(sent), until, machine.now)
            else sent
        )

    def empty_since(self, op: Op) -> Since | None:
        """What shows that nobody can hold the lane against the asker, though no grant of this epoch is known.

        A crash of the broker; or the last grant, where the answer names a later epoch. Where no grant was ever seen,
        the lane's first request: what was granted before it has run out; or, sooner, the asker's join. Only where
        everybody is recorded.
        """
        machine, context, grant = self.machine, self.machine.context, self.grant
        if (
            not context.info.closed_world
            or op.client == NO_TEXT
            or context.frames_twice <= machine.now
        ):
            return None
        if grant is not None and not machine.broker_died_since(grant):
            return None
        crashes = reversed(context.broker_deaths.get(machine.broker, ()))
        crash = next(((seq, us) for seq, us in crashes if seq <= machine.now), None)
        if crash is not None and (grant is None or crash[0] > grant.begin):
            late = () if grant is None else (grant,)  # answered after it, it may be of after it
            shown = crash[0] < op.begin and self._nobody_else(op, crash[1], also=late)
            return Since(Kind.CRASH, crash[0]) if shown else None
        if grant is not None:
            restarted = NONE < grant.epoch < op.epoch and ended_before(grant, op)
            shown = restarted and self._nobody_else(op, grant.started)
            return Since(Kind.LOCK, grant.begin, grant) if shown else None
        return self._never_granted(op) if self._nobody_else(op) else None

    def _never_granted(self, op: Op) -> Since | None:
        machine, first = self.machine, self.first
        if (
            first is not None
            and op.started - first.started - self.clocks_us >= self.limit_us + self.bound_us
        ):
            return Since(Kind.LOCK, first.begin, first)
        joined = machine.context.member_since(
            machine.lane.group, machine.lane.name(op.client), machine.now
        )
        return None if joined is None else Since(Kind.JOIN, joined)


class LastGrantLane(Machine):
    """Goes through a lane's lock and unlock rows, and knows its last grant."""

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.last = LastGrant(self)

    def free(self, op: Op, grant: Op, why: str) -> None:
        """A request was answered, granted or refused, for a lane that was certainly free for the asker.

        grant: the lane's last. why: OWN, RELEASED or EXPIRED.
        """

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

    def is_wrong(self, op: Op, *, granted: bool) -> bool:
        """The clause is at stake: was the request not answered so, granted or refused?"""
        self.stakes += 1
        return (op.outcome is Outcome.OK) != granted


class LeaseEndLane(LastGrantLane):
    """Knows the grants that certainly live as well."""

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.grants = Grants(self)

    def owned(self, op: Op, lease: Op) -> None:
        """A request was answered, granted or refused, while somebody else's grant certainly lived."""

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


def takes_away(op: Op, last: Op | None) -> bool:
    """Does the answer take the lease away? last: the grant or the unlock that the client had last.

    A late answer to a request that is older than the grant's takes nothing away.
    """
    return refuses(op) and (last is None or last.kind is not Kind.LOCK or op.begin > last.begin)
