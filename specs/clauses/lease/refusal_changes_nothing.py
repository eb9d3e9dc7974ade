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

from dataclasses import dataclass

from specs.clauses.judging import Finding
from specs.clauses.premises import BROKER_LIVES, NO_FRAME_TWICE, NO_WALL_CLOCK_STEP, UNHINDERED
from specs.clauses.rows import over_us
from specs.clauses.words import at, ms
from specs.facts.findings import Findings
from specs.facts.grants import EXPIRED, LeaseEndLane, refuses
from specs.facts.lanes import OP_COLUMNS, LaneItems, Op, each_lane, ended_before
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
COLUMNS = OP_COLUMNS


@dataclass(frozen=True, slots=True)
class Changed(Finding):
    """asked: after the refusal, by somebody else than the owner; granted too early, or refused too late."""

    lease: Row
    refusal: Row
    asked: Row


class Lane(LeaseEndLane):
    """The last refusal of the lane while it was certainly owned, and the lease that it met."""

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.met: dict[int, tuple[Op, Op]] = {}  # by owner
        self.given_back: set[int] = set()  # by whom, since its last grant

    def _culprit(self, lease: Op, op: Op) -> Op | None:
        """The last refusal that met this lease, if it was answered before the request."""
        met, refusal = self.met.get(lease.client, (None, None))
        if met is None or refusal is None or met.place != lease.place:
            return None
        return refusal if ended_before(refusal, op) else None

    def begins(self, op: Op) -> None:
        super().begins(op)
        if op.kind is Kind.UNLOCK:
            self.given_back.add(op.client)

    def owned(self, op: Op, lease: Op) -> None:
        refusal = self._culprit(lease, op)
        if refusal is not None and self.is_wrong(op, granted=False):
            self.broken(Changed, lease=lease, refusal=refusal, asked=op)
        if refuses(op) and ended_before(lease, op):
            self.met[lease.client] = lease, op

    def free(self, op: Op, grant: Op, why: str) -> None:
        refusal = self._culprit(grant, op)
        if refusal is None or why != EXPIRED or grant.client in self.given_back:
            return
        lately = op.started - refusal.over_us + self.last.clocks_us < self.last.limit_us
        if lately and self.is_wrong(op, granted=True):
            self.broken(Changed, lease=grant, refusal=refusal, asked=op)

    def asked(self, op: Op) -> None:
        super().asked(op)
        if op.outcome is Outcome.OK:
            self.given_back.discard(op.client)


judge = each_lane(Lane, KINDS, lease=True)


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
