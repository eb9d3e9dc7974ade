"""Nobody is granted a lane while another client's grant lives.

A grant is made somewhere between the request's begin and its answer. It lives until its owner's unlock may have
reached the broker, or until it is strictly older than the broker's limit. So the second grant refutes only when
it certainly came later than the first and was certainly made while the first was alive: the second answer came
at most the limit after the first request began. Holds within one broker epoch: a restart empties the table.
Says nothing about listeners that outlive their grant (see one_processor_at_a_time).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from specs.clauses.base import (
    BROKER_LIVES,
    MS,
    NO_WALL_CLOCK_STEP,
    Context,
    Finding,
    Judge,
    at,
    ended_before,
    ms,
)
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "LSE-1"
TITLE = "one owner at a time"
STATEMENT = "No two clients hold the lease of one lane at the same time."
PARTY = Party.BROKER
KEY = Key.LANE
PREMISE = (NO_WALL_CLOCK_STEP, BROKER_LIVES)
SOURCES = ("docs/sources.md#lock-table",)
KINDS = frozenset({Kind.LOCK, Kind.UNLOCK})


@dataclass(frozen=True, slots=True)
class TwoOwners(Finding):
    first: Row
    second: Row


class LaneJudge(Judge):
    """Remembers the grants of one lane that may still live, and unlocks that may still be under way."""

    __slots__ = ("grants", "unlocking")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.grants: dict[str, Row] = {}
        self.unlocking: dict[str, int] = {}  # client → time (µs) until which its unlock may still be applied

    def begins(self, row: Row) -> Iterator[Finding]:
        if row.kind is Kind.UNLOCK and row.client_id:
            self.grants.pop(row.client_id, None)
            # Answered, it is over at its end; one way or unanswered it may be applied for a while yet.
            answered = row.outcome is Outcome.OK and row.ended_us is not None
            until = row.ended_us if answered else (row.ended_us or row.started_us) + self.config.delay_bound_ms * MS
            self.unlocking[row.client_id] = max(until or 0, self.unlocking.get(row.client_id, 0))
        return iter(())

    def ends(self, row: Row) -> Iterator[Finding]:
        if row.kind is not Kind.LOCK or row.client_id is None or row.ended_us is None:
            return
        limit = self.config.broker_lease_ms * MS
        for client, grant in list(self.grants.items()):
            if client == row.client_id or not ended_before(grant, row):
                continue
            if self.context.broker_died_since(row.broker, grant) or row.started_us - grant.started_us > limit:
                del self.grants[client]
                continue
            if row.outcome is Outcome.UNKNOWN or row.ended_us - grant.started_us > limit:
                continue  # the grant may have run out while the request was under way
            self.opportunities += 1
            if row.outcome is Outcome.OK:
                yield TwoOwners(grant, row, certain=self.context.info.clock_bound_us == 0)
                del self.grants[client]
        if row.outcome is Outcome.OK:
            if self.unlocking.get(row.client_id, -1) < row.started_us:
                self.grants[row.client_id] = row
            else:
                self.grants.pop(row.client_id, None)


judge = LaneJudge


def explain(found: TwoOwners) -> str:
    first, second = found.first, found.second
    age = (second.ended_us or second.started_us) - first.started_us
    return (
        f"{second.client_id} was granted {second.lane} at {at(second)}, {ms(age)} after {first.client_id} had been "
        f"granted it at {at(first)}; {first.client_id} had not given it back and its grant had not run out"
    )


SHORTEST_VIOLATION = """
    0ms      alice  locks  billing/orders/b0/3   ok
    59999ms  bob    locks  billing/orders/b0/3   ok
"""
ALLOWED_THOUGH_IT_LOOKS_WRONG = """
    0ms      alice  locks    billing/orders/b0/3   ok
    10ms     alice  unlocks  billing/orders/b0/3   ok
    20ms     bob    locks    billing/orders/b0/3   ok
    60021ms  carol  locks    billing/orders/b0/3   ok   # bob's grant is older than 60 s
"""
