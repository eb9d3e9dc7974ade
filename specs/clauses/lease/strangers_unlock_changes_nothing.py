"""An unlock by a client that does not own the lane changes nothing.

A special case of LSE-1, and the one that names the culprit: while a grant certainly lives, somebody else sends an
unlock, and after it a third request (by anyone but the owner) is granted. The same certainty as in LSE-1 is asked
for. The stranger's unlock may be unanswered: if it does nothing, it does not matter whether it arrived.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.grants import UNHINDERED, Grants
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import BROKER_LIVES, NO_WALL_CLOCK_STEP
from specs.clauses.rows import ended_before, over_us
from specs.clauses.words import at, ms
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


@dataclass(frozen=True, slots=True)
class FreedByStranger(Finding):
    grant: Row
    unlock: Row
    second: Row


class LaneJudge(Judge):
    """Remembers the grants that certainly live, and for each the last unlock by somebody else."""

    __slots__ = ("grants", "strangers")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.grants = Grants(context)
        self.strangers: dict[str, Row] = {}

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.UNLOCK and row.client_id is not None:
            for owner, grant in self.grants.alive.items():
                if owner != row.client_id and ended_before(grant, row):
                    self.strangers[owner] = row
            self.grants.unlock_begins(row)
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.kind is not Kind.LOCK or row.client_id is None:
            return NOTHING
        found: list[Finding] = []
        for grant in self.grants.contested_by(row):
            unlock = self.strangers.get(grant.client_id or "")
            if unlock is not None and unlock.seq_begin < row.seq_begin:
                self.opportunities += 1
                if row.outcome is Outcome.OK:
                    found.append(FreedByStranger(grant, unlock, row))
            if row.outcome is Outcome.OK:
                self.grants.ends(grant)
        if row.outcome is Outcome.OK:
            self.strangers.pop(row.client_id, None)
        self.grants.lock_ends(row)
        return found


judge = LaneJudge


def explain(found: FreedByStranger) -> str:
    grant, unlock, second = found.grant, found.unlock, found.second
    age = over_us(second) - grant.started_us
    return (
        f"{second.client_id} was granted {second.lane} at {at(second)}, {ms(age)} after {grant.client_id} had been "
        f"granted it at {at(grant)}: the unlock that {unlock.client_id}, a stranger, sent at {at(unlock)} had freed it"
    )
