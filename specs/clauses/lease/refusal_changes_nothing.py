"""A refused request leaves the owner's lease as it was: it makes it neither longer nor shorter.

A special case of LSE-1, LSE-4 and LSE-14, and the one that names the culprit: somebody is refused an owned lane, and
after that the lease lives on though it has run out (the last refusal is at most the limit ago, so that it may have
prolonged it), or somebody is granted the lane though the lease still lives. The same certainty as in those clauses
is asked for. What the owner itself is answered is no refusal of a stranger, and does not count.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.base import (
    BROKER_LIVES,
    NO_FRAME_TWICE,
    NO_WALL_CLOCK_STEP,
    NOTHING,
    Context,
    Finding,
    Judge,
    at,
    ended_before,
    ms,
)
from specs.clauses.grants import Free, Grants, LastGrant, refuses
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "LSE-7"
TITLE = "a refusal changes nothing"
STATEMENT = "A refused request for a lane changes nothing about its owner's lease."
PARTY = Party.BROKER
KEY = Key.LANE
PREMISE = (NO_WALL_CLOCK_STEP, BROKER_LIVES, NO_FRAME_TWICE)
SOURCES = ("docs/sources.md#lock-table",)
KINDS = frozenset({Kind.LOCK, Kind.UNLOCK})
REFINES = ("LSE-1", "LSE-4", "LSE-14")


@dataclass(frozen=True, slots=True)
class Changed(Finding):
    """asked: after the refusal, by somebody else than the owner; granted too early, or refused too late."""

    lease: Row
    refusal: Row
    asked: Row


class LaneJudge(Judge):
    """Remembers the grants that certainly live, the last one, and the last refusal."""

    __slots__ = ("grants", "last", "refusal")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.grants = Grants(context)
        self.last = LastGrant(context)
        self.refusal: Row | None = None

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.UNLOCK:
            self.grants.unlock_begins(row)
        else:
            self.last.lock_begins(row)
        return NOTHING

    def _refused_since(self, lease: Row, row: Row) -> Row | None:
        """The last refusal, where it is a stranger's and lies between the owner's grant and the request."""
        refusal = self.refusal
        if refusal is None or refusal.client_id == lease.client_id:
            return None
        return refusal if ended_before(lease, refusal) and ended_before(refusal, row) else None

    def ends(self, row: Row) -> Iterable[Finding]:
        last = self.last
        if row.client_id is None:
            return NOTHING
        if row.kind is Kind.UNLOCK:
            last.unlock_ends(row)
            return NOTHING
        found: list[Finding] = []
        certain = self.context.info.clock_bound_us == 0
        granted = row.outcome is Outcome.OK
        for lease in self.grants.contested_by(row):
            if (refusal := self._refused_since(lease, row)) is not None:
                self.opportunities += 1
                if granted:
                    found.append(Changed(lease, refusal, row, certain=certain))
            if granted:
                self.grants.ends(lease)
        if (granted or refuses(row)) and last.free_for(row) is Free.EXPIRED and last.grant is not None:
            refusal = self._refused_since(last.grant, row)
            if refusal is not None and row.started_us - (refusal.ended_us or 0) < last.limit_us:
                self.opportunities += 1
                if not granted:
                    found.append(Changed(last.grant, refusal, row, certain=certain))
        if granted:
            last.granted(row)
        elif refuses(row):
            self.refusal = row
        self.grants.lock_ends(row)
        return found


judge = LaneJudge


def explain(found: Changed) -> str:
    lease, refusal, asked = found.lease, found.refusal, found.asked
    granted = asked.outcome is Outcome.OK
    begun = lease.started_us if granted else lease.ended_us or lease.started_us
    until = (asked.ended_us or asked.started_us) if granted else asked.started_us
    age = ms(until - begun)
    return (
        f"{asked.client_id} was {'granted' if granted else 'refused'} {asked.lane} at {at(asked)}, when "
        f"{lease.client_id}'s lease was {age} old and {'still alive' if granted else 'over'}: the refusal of "
        f"{refusal.client_id} at {at(refusal)} had changed it"
    )


SHORTEST_VIOLATION = """
    0ms      alice  locks    billing/orders/b0/3   ok
    50000ms  bob    locks    billing/orders/b0/3   refused
    60001ms  bob    locks    billing/orders/b0/3   refused
"""
ALLOWED_THOUGH_IT_LOOKS_WRONG = """
    0ms      alice  locks    billing/orders/b0/3   ok
    50000ms  bob    locks    billing/orders/b0/3   refused
    55000ms  alice  locks    billing/orders/b0/3   ok        # its owner has renewed it
    60001ms  bob    locks    billing/orders/b0/3   refused
"""
