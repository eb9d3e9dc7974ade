"""After a suspended batch the next call starts at the batch's lowest offset.

A batch is put back as a whole. The next call of the incarnation starts at its lowest offset, or, where some of its
messages were given up meanwhile, at the lowest of the others. Claimed for starts up to the batch's highest offset:
a call that starts beyond a suspended batch is ORD-3's matter. A manual ROLLBACK puts more back than its batch, see
RTY-9. Says nothing once the lane was reset.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.base import NO_RESET, NOTHING, ORDERLY, Finding, at, who
from specs.clauses.calls import CALL_KINDS, Calls, CallsJudge
from specs.history.row import Row
from specs.vocabulary import LISTENER_SUSPENDS, Key, Kind, Party

ID = "RTY-4"
TITLE = "the next call starts at the lowest suspended offset"
STATEMENT = "After a suspended batch, the next call of the incarnation starts at the lowest offset of that batch."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (ORDERLY, NO_RESET)
SOURCES = ("docs/sources.md#orderly-loop",)
KINDS = CALL_KINDS
NEEDS = frozenset({Kind.DELIVER})


@dataclass(frozen=True, slots=True)
class StartedElsewhere(Finding):
    """lowest, highest: of the suspended batch (one row where it held one message)."""

    lowest: Row
    highest: Row
    next: Row


class LaneJudge(CallsJudge):
    """Compares the start of each call with the batch that was suspended before it."""

    __slots__ = ()

    def next_call(self, calls: Calls, row: Row) -> Iterable[Finding]:
        if not calls.rows or calls.rows[-1].outcome not in LISTENER_SUSPENDS:
            return NOTHING
        batch = sorted(calls.rows, key=lambda each: each.queue_offset or 0)
        kept = [each for each in batch if each.queue_offset not in calls.given_up]
        if not kept:
            return NOTHING
        self.opportunities += 1
        allowed = (batch[0].queue_offset, kept[0].queue_offset)
        if row.queue_offset in allowed or (row.queue_offset or 0) > (batch[-1].queue_offset or 0):
            return NOTHING
        return (StartedElsewhere(kept[0], batch[-1], row),)


judge = LaneJudge


def explain(found: StartedElsewhere) -> str:
    lowest, new = found.lowest, found.next
    return (
        f"{who(new)} started offset {new.queue_offset} of {new.lane} at {at(new)}, although the batch from offset "
        f"{lowest.queue_offset} to {found.highest.queue_offset} had ended {lowest.outcome} and had to come again from "
        f"its lowest offset"
    )
