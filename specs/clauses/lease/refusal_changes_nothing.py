"""A refused request leaves the owner's lease as it was: it makes it neither longer nor shorter.

A special case of LSE-1, LSE-4 and LSE-14, and the one that names the culprit: somebody is refused an owned lane, and
after that the lease lives on though it has run out (the last such refusal is at most the limit ago, so that it may
have prolonged it), or somebody is granted the lane though the lease still lives. The same certainty as in those
clauses is asked for, also of the refusal: the lease lived when it was answered. A refusal that comes when the lease
may have run out is no culprit, and neither is any once the owner has begun to give the lane back, whatever that was
answered: a lane that is not free then is a matter of LSE-4 or LSE-6. What the owner itself is answered is no refusal
of a stranger, and does not count.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.grants import UNHINDERED, Free, LeaseEndJudge, refuses
from specs.clauses.judging import NOTHING, Finding
from specs.clauses.premises import BROKER_LIVES, NO_FRAME_TWICE, NO_WALL_CLOCK_STEP
from specs.clauses.rows import ended_before, over_us
from specs.clauses.words import at, ms
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "LSE-7"
TITLE = "a refusal changes nothing"
STATEMENT = "A refused request for a lane changes nothing about its owner's lease."
PARTY = Party.BROKER
KEY = Key.LANE
PREMISE = (NO_WALL_CLOCK_STEP, BROKER_LIVES, NO_FRAME_TWICE, UNHINDERED)
SOURCES = ("docs/sources.md#lock-table",)
KINDS = frozenset({Kind.LOCK, Kind.UNLOCK})
SETTINGS = ("broker_lease_ms",)
NEEDS = frozenset({Kind.LOCK})
CONCLUDES_FROM_ABSENCE = True
REFINES = ("LSE-1", "LSE-4", "LSE-14")


@dataclass(frozen=True, slots=True)
class Changed(Finding):
    """asked: after the refusal, by somebody else than the owner; granted too early, or refused too late."""

    lease: Row
    refusal: Row
    asked: Row


class LaneJudge(LeaseEndJudge):
    """Remembers, of each owner, the last refusal of a stranger while its lease lived."""

    __slots__ = ("refusals",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.refusals: dict[str, Row] = {}

    def _refused_before(self, row: Row, lease: Row) -> Row | None:
        """The last refusal of the owned lane, where it was answered before the request."""
        refusal = self.refusals.get(lease.client_id or "")
        return refusal if refusal is not None and ended_before(refusal, row) else None

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.UNLOCK:
            self.refusals.pop(row.client_id or "", None)
        return super().begins(row)

    def owned(self, row: Row, lease: Row) -> Iterable[Finding]:
        refusal = self._refused_before(row, lease)
        if refuses(row) and ended_before(lease, row):
            self.refusals[lease.client_id or ""] = row
        if refusal is None:
            return NOTHING
        self.opportunities += 1
        return (Changed(lease, refusal, row),) if row.outcome is Outcome.OK else NOTHING

    def free(self, row: Row, grant: Row, why: Free) -> Iterable[Finding]:
        refusal = self._refused_before(row, grant)
        if why is not Free.EXPIRED or refusal is None:
            return NOTHING
        if row.started_us - over_us(refusal) + self.last.bound_us >= self.last.limit_us:
            return NOTHING
        self.opportunities += 1
        return NOTHING if row.outcome is Outcome.OK else (Changed(grant, refusal, row),)

    def asked(self, row: Row) -> Iterable[Finding]:
        found = super().asked(row)
        if row.outcome is Outcome.OK:
            self.refusals.pop(row.client_id or "", None)
        return found


judge = LaneJudge


def explain(found: Changed) -> str:
    lease, refusal, asked = found.lease, found.refusal, found.asked
    granted = asked.outcome is Outcome.OK
    begun = lease.started_us if granted else over_us(lease)
    until = over_us(asked) if granted else asked.started_us
    age = ms(until - begun)
    return (
        f"{asked.client_id} was {'granted' if granted else 'refused'} {asked.lane} at {at(asked)}, when "
        f"{lease.client_id}'s lease was {age} old and {'still alive' if granted else 'over'}: the refusal of "
        f"{refusal.client_id} at {at(refusal)} had changed it"
    )
