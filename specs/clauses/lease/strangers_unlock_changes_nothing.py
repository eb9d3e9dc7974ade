"""An unlock by a client that does not own the lane changes nothing.

A special case of LSE-1, and the one that names the culprit: while a grant certainly lives, somebody else sends an
unlock, and after it a third request (by anyone but the owner) is granted. The same certainty as in LSE-1 is asked
for. The stranger's unlock may be unanswered: if it does nothing, it does not matter whether it arrived.
"""

from __future__ import annotations

from dataclasses import dataclass

from specs.clauses.judging import Finding
from specs.clauses.premises import BROKER_LIVES, NO_WALL_CLOCK_STEP, UNHINDERED
from specs.clauses.rows import over_us
from specs.clauses.words import at, ms
from specs.facts.findings import Findings
from specs.facts.grants import Grants
from specs.facts.lanes import OP_COLUMNS, LaneItems, Machine, Op, each_lane, ended_before
from specs.facts.segments import NO_TEXT
from specs.history.row import Row
from specs.plan.traits import Stake, Trait
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "LSE-8"
TITLE = "a stranger's unlock changes nothing"
STATEMENT = "An unlock by a client that does not own the lane changes nothing."
PARTY = Party.BROKER
KEY = Key.LANE
PREMISE = (NO_WALL_CLOCK_STEP, BROKER_LIVES, UNHINDERED)
SOURCES = ("docs/sources.md#lock-table",)
STAKES = (Stake(Trait.STRANGER),)
KINDS = frozenset({Kind.LOCK, Kind.UNLOCK})
SETTINGS = ("broker_lease_ms",)
NEEDS = frozenset({Kind.LOCK, Kind.UNLOCK})
EXCUSED_BY = frozenset({Kind.FAULT})
REFINES = ("LSE-1",)
COLUMNS = OP_COLUMNS


@dataclass(frozen=True, slots=True)
class FreedByStranger(Finding):
    grant: Row
    unlock: Row
    second: Row


class Lane(Machine):
    """The grants that certainly live, and for each owner the last unlock by somebody else."""

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.grants = Grants(self)
        self.strangers: dict[int, Op] = {}

    def begins(self, op: Op) -> None:
        if op.kind is not Kind.UNLOCK or op.client == NO_TEXT:
            return
        for owner, grant in self.grants.alive.items():
            if owner != op.client and ended_before(grant, op):
                self.strangers[owner] = op
        self.grants.unlock_begins(op)

    def ends(self, op: Op) -> None:
        if op.kind is not Kind.LOCK or op.client == NO_TEXT:
            return
        granted = op.outcome is Outcome.OK
        for grant in self.grants.contested_by(op):
            unlock = self.strangers.get(grant.client)
            if unlock is not None and unlock.begin < op.begin:
                self.stakes += 1
                if granted:
                    self.broken(FreedByStranger, grant=grant, unlock=unlock, second=op)
            if granted:
                self.grants.over(grant)
        if granted:
            self.strangers.pop(op.client, None)
        self.grants.lock_ends(op)


judge = each_lane(Lane, KINDS, lease=True)


def explain(found: FreedByStranger) -> str:
    grant, unlock, second = found.grant, found.unlock, found.second
    age = over_us(second) - grant.started_us
    return (
        f"{second.client_id} was granted {second.lane} at {at(second)}, {ms(age)} after {grant.client_id} had been "
        f"granted it at {at(grant)}: the unlock that {unlock.client_id}, a stranger, sent at {at(unlock)} had freed it"
    )
