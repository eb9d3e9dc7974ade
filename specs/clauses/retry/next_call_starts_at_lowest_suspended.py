"""After a suspended batch the next call starts at the batch's lowest offset, and nothing of the batch is left behind.

A batch is put back as a whole. (a) The next call of the incarnation starts at its lowest offset, or, where some of its
messages were given up meanwhile, at one up to the lowest of the others. In an open world the batch may have begun below
what is seen of it, unless it is full, or the ADD or an earlier call of its incarnation was seen. (b) Each of the others
is owed until it was delivered again or given up: no call delivers anything beyond it before, be it the next call or,
where only a part of the batch came again, a later one. A message whose retries were used up, and of whose dead letter
there is no row, may have been given up unseen: nothing is claimed of it. Nor is anything owed that the broker has
removed on purpose: a server that keeps what waits can't give it again. A manual ROLLBACK puts more back than its batch,
see RTY-9. Nothing is remembered across an ADD or a reset: a call that began before is of an earlier life, and asks for
nothing when it ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.calls import CALL_KINDS, Calls, CallsJudge
from specs.clauses.judging import NOTHING, Finding
from specs.clauses.premises import NO_RESET, NOT_REMOVED, ORDERLY
from specs.clauses.words import at, who
from specs.history.row import Row
from specs.vocabulary import LISTENER_SUSPENDS, Key, Kind, Party

ID = "RTY-4"
TITLE = "the next call starts at the lowest suspended offset"
STATEMENT = (
    "After a suspended batch, the next call of the incarnation starts at the lowest offset of that batch, and no call "
    "goes beyond a message of it that has not come again."
)
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (ORDERLY, NO_RESET, NOT_REMOVED)
SOURCES = ("docs/sources.md#orderly-loop",)
KINDS = CALL_KINDS
SETTINGS = ("batch", "max_reconsume_times")
NEEDS = frozenset({Kind.DELIVER})


@dataclass(frozen=True, slots=True)
class StartedElsewhere(Finding):
    """lowest, highest: of the suspended batch (one row where it held one message)."""

    lowest: Row
    highest: Row
    next: Row


@dataclass(frozen=True, slots=True)
class LeftBehind(Finding):
    """suspended: it was put back and has not come again. dead_letter: of it, when one failed."""

    suspended: Row
    dead_letter: Row | None
    beyond: Row


class LaneJudge(CallsJudge):
    """Compares the start of a call with the batch that was suspended before it, and all of it with what is owed."""

    __slots__ = ()

    def next_call(self, calls: Calls, row: Row) -> Iterable[Finding]:
        offset = row.queue_offset or 0
        owed = self.due(calls, row)
        if owed:
            self.opportunities += 1
        if not owed or not calls.rows or calls.rows[-1].outcome not in LISTENER_SUSPENDS:
            return self._left_behind(calls, row)
        batch = sorted(calls.rows, key=lambda each: each.queue_offset or 0)
        kept = [each for each in owed if each in calls.rows]
        if not kept or offset > (batch[-1].queue_offset or 0):
            return self._left_behind(calls, row)
        is_whole = calls.begun or len(batch) >= self.config.batch  # else some of it may be cut off
        lowest = batch[0].queue_offset or 0 if is_whole else 0
        if lowest <= offset <= (kept[0].queue_offset or 0):
            return self._left_behind(calls, row)
        calls.passed_by(offset)
        return (StartedElsewhere(kept[0], batch[-1], row),)

    def same_call(self, calls: Calls, row: Row) -> Iterable[Finding]:
        found = self._left_behind(calls, row)
        if found:
            self.opportunities += 1
        return found

    def _left_behind(self, calls: Calls, row: Row) -> tuple[Finding, ...]:
        offset = row.queue_offset or 0
        passed = [each for each in self.due(calls, row) if (each.queue_offset or 0) < offset]
        if not passed:
            return NOTHING
        suspended = passed[0]
        found = LeftBehind(suspended, calls.failed.get(suspended.queue_offset or 0), row)
        calls.passed_by(offset)
        return (found,)


judge = LaneJudge


def explain(found: StartedElsewhere | LeftBehind) -> str:
    if isinstance(found, LeftBehind):
        suspended, new = found.suspended, found.beyond
        return (
            f"{who(new)} delivered offset {new.queue_offset} of {new.lane} at {at(new)}, although offset "
            f"{suspended.queue_offset}, which had ended {suspended.outcome} after its delivery at {at(suspended)}, has "
            f"not come again"
        )
    lowest, new = found.lowest, found.next
    return (
        f"{who(new)} started offset {new.queue_offset} of {new.lane} at {at(new)}, although the batch from offset "
        f"{lowest.queue_offset} to {found.highest.queue_offset} had ended {lowest.outcome} and had to come again from "
        f"its lowest offset"
    )
