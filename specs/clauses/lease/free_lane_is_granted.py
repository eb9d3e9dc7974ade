"""A lane that is free, the asker's own, or held by an expired grant, is granted when asked for.

A refusal refutes where the lane's last certain grant shows that nobody could hold it against the asker: it was the
asker's own; or its owner gave it back and was told so; or it is strictly older than the broker's limit (in whole
milliseconds of the broker's clock). Anybody else's request since then that was not refused, answered or not, may
hold the lane, and then nothing is claimed. A refusal with an error code says nothing about the lane.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.base import (
    BROKER_LIVES,
    MS,
    NO_WALL_CLOCK_STEP,
    NOTHING,
    Context,
    Finding,
    Judge,
    at,
    ended_before,
    ms,
)
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "LSE-4"
TITLE = "a free lane is granted"
STATEMENT = "A lane that is free, the asker's own or expired is granted when asked for."
PARTY = Party.BROKER
KEY = Key.LANE
PREMISE = (NO_WALL_CLOCK_STEP, BROKER_LIVES)
SOURCES = ("docs/sources.md#lock-table",)
KINDS = frozenset({Kind.LOCK, Kind.UNLOCK})


@dataclass(frozen=True, slots=True)
class Refused(Finding):
    """unlock: the owner's, where that freed the lane; else None."""

    grant: Row
    unlock: Row | None
    refused: Row


class LaneJudge(Judge):
    """Remembers the lane's last grant, its owner's answered unlock, and who else may have been granted it since."""

    __slots__ = ("delay_bound_us", "grant", "limit_us", "others", "unlock")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.delay_bound_us = self.config.delay_bound_ms * MS
        self.limit_us = (self.config.broker_lease_ms + 1) * MS
        self.grant: Row | None = None
        self.unlock: Row | None = None
        self.others: list[Row] = []  # requests, other than the grant, that may have been applied after it

    def _applied_until(self, row: Row) -> int:
        """The last moment, in µs, at which the broker may have acted on the request."""
        if row.outcome is Outcome.OK and row.ended_us is not None:
            return row.ended_us
        return max(row.ended_us or 0, row.started_us + self.delay_bound_us)

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.LOCK and not (row.outcome is Outcome.REFUSED and not row.code):
            self.others.append(row)
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.client_id is None:
            return NOTHING
        grant = self.grant
        if row.kind is Kind.UNLOCK:
            if (
                row.outcome is Outcome.OK
                and grant is not None
                and row.client_id == grant.client_id
                and ended_before(grant, row)
            ):
                self.unlock = row
            return NOTHING
        granted = row.outcome is Outcome.OK
        found: Iterable[Finding] = NOTHING
        if granted or (row.outcome is Outcome.REFUSED and not row.code):
            proof = self._must_be_granted(row)
            if proof is not None:
                self.opportunities += 1
                if not granted:
                    found = (proof,)
        if granted:
            # The one before stays in question only when it may have been applied after this one.
            self.others = [
                each
                for each in (*self.others, *((grant,) if grant is not None else ()))
                if each is not row and self._applied_until(each) >= row.started_us
            ]
            self.grant, self.unlock = row, None
        return found

    def _must_be_granted(self, row: Row) -> Refused | None:
        """The evidence that nobody could hold the lane against the asker."""
        grant, unlock = self.grant, self.unlock
        if grant is None or not ended_before(grant, row) or self.context.broker_died_since(row.broker, grant):
            return None
        own = grant.client_id == row.client_id
        released = not own and unlock is not None and ended_before(unlock, row)
        if not (own or released or row.started_us - (grant.ended_us or 0) >= self.limit_us):
            return None
        for other in self.others:
            if other is row or other.client_id == row.client_id:
                continue
            since = unlock if released and unlock is not None and other.client_id == grant.client_id else grant
            if self._applied_until(other) >= since.started_us:
                return None
        certain = self.context.info.clock_bound_us == 0
        return Refused(grant, unlock if released else None, row, certain=certain)


judge = LaneJudge


def explain(found: Refused) -> str:
    grant, unlock, refused = found.grant, found.unlock, found.refused
    asked = f"{refused.client_id} was refused {refused.lane} at {at(refused)}"
    if grant.client_id == refused.client_id:
        return f"{asked}, although it had been granted it at {at(grant)} and nobody else since"
    if unlock is not None:
        return (
            f"{asked}, although {grant.client_id}, who was granted it at {at(grant)}, had given it back at "
            f"{at(unlock)} and nobody else had been granted it since"
        )
    age = ms(refused.started_us - (grant.ended_us or grant.started_us))
    return f"{asked}, although the last grant ({grant.client_id}'s of {at(grant)}) was {age} old"


SHORTEST_VIOLATION = """
    0ms      alice  locks    billing/orders/b0/3   ok
    10ms     alice  unlocks  billing/orders/b0/3   ok
    20ms     bob    locks    billing/orders/b0/3   refused
"""
ALLOWED_THOUGH_IT_LOOKS_WRONG = """
    0ms           alice  locks    billing/orders/b0/3   ok
    60000ms       bob    locks    billing/orders/b0/3   refused   # exactly the limit is still alive
    60001ms..60901ms carol  locks    billing/orders/b0/3   unknown   # may have been granted it
    60950ms       bob    locks    billing/orders/b0/3   refused
"""
