"""Nobody is granted a lane while another client's grant lives.

A grant is made somewhere between the request's begin and its answer. It lives until its owner's unlock may have
reached the broker, or until it is strictly older than the broker's limit. So two grants refute only when the later
one was certainly made while the earlier one was alive: the last answer came at most the limit after the first
request began. Which of two requests that overlap was granted first is open, and does not matter. Holds within one
broker epoch: a restart empties the table. An unlock that a fault of its link may have held back may be applied when
that is over, and the second frame of one that came twice within the delay bound of the answer. One from before a
history that begins late may yet be on its way, so that what is found there is at most possible; and so is it where
either of the two has ever given the lane back, and the history would not tell of a fault or a pause that held that up.
Says nothing about listeners that outlive their grant (see one_processor_at_a_time).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.certainty import recorded
from specs.clauses.context import Context
from specs.clauses.grants import UNHINDERED, Grants
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import BROKER_LIVES, NO_WALL_CLOCK_STEP
from specs.clauses.rows import ended_before, over_us
from specs.clauses.words import at, ms
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "LSE-1"
TITLE = "one owner at a time"
STATEMENT = "No two clients hold the lease of one lane at the same time."
PARTY = Party.BROKER
KEY = Key.LANE
PREMISE = (NO_WALL_CLOCK_STEP, BROKER_LIVES, UNHINDERED)
SOURCES = ("docs/sources.md#lock-table",)
RULES = ("WIR-3",)
KINDS = frozenset({Kind.LOCK, Kind.UNLOCK})
SETTINGS = ("broker_lease_ms",)
LOOKS_BACK = True
NEEDS = frozenset({Kind.LOCK})


@dataclass(frozen=True, slots=True)
class TwoOwners(Finding):
    first: Row
    second: Row


class LaneJudge(Judge):
    """Remembers the grants of one lane that certainly live."""

    __slots__ = ("grants", "tells_delays")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.grants = Grants(context)
        known = recorded(context.info)
        self.tells_delays = known is None or known >= {Kind.FAULT, Kind.PAUSE}

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.UNLOCK:
            self.grants.unlock_begins(row)
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.kind is not Kind.LOCK or row.client_id is None:
            return NOTHING
        found: list[Finding] = []
        for grant in self.grants.contested_by(row):
            self.opportunities += 1
            if row.outcome is Outcome.OK:
                unlocks = self.grants.unlocks
                late = unlocks.has_of(grant.client_id) or unlocks.has_of(row.client_id)
                found.append(TwoOwners(grant, row, certain=self.tells_delays or not late))
                self.grants.ends(grant)
        self.grants.lock_ends(row)
        return found


judge = LaneJudge


def explain(found: TwoOwners) -> str:
    first, second = found.first, found.second
    if not ended_before(first, second):
        first, second = sorted((first, second), key=lambda row: row.seq_begin)
        later = ms(second.started_us - first.started_us)
        return (
            f"{second.client_id} asked for {second.lane} at {at(second)}, {later} after "
            f"{first.client_id} had asked at {at(first)}; both were granted it, and neither had given it back"
        )
    age = over_us(second) - first.started_us
    return (
        f"{second.client_id} was granted {second.lane} at {at(second)}, {ms(age)} after {first.client_id} had been "
        f"granted it at {at(first)}; {first.client_id} had not given it back and its grant had not run out"
    )
