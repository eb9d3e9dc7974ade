"""A message whose dead letter was refused, or not answered, is delivered again: the lane does not pass it.

A send without an answer may have happened, so the message may come twice; skipping it would lose it. It stays owed
until the incarnation has delivered it again, or a further dead letter of it was acknowledged, whatever else of its
batch comes first: no call may hold, or start with, anything beyond it before. Says nothing about an incarnation that
makes no further call, and nothing once the lane was reset."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.calls import CALL_KINDS, Calls, CallsJudge
from specs.clauses.judging import Finding
from specs.clauses.premises import NO_RESET, ORDERLY
from specs.clauses.words import at, who
from specs.history.row import Row
from specs.plan.traits import Stake, Trait
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "DLQ-6"
TITLE = "a failed dead letter means redelivery"
STATEMENT = "A message whose dead letter was not acknowledged is delivered again, never skipped."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (ORDERLY, NO_RESET)
SOURCES = ("docs/sources.md#dead-letters",)
REFINES = ("ORD-3",)
STAKES = (Stake(Trait.FULL_DISK),)
KINDS = CALL_KINDS
NEEDS = frozenset({Kind.DEAD_LETTER, Kind.DELIVER})


@dataclass(frozen=True, slots=True)
class Skipped(Finding):
    failed: Row
    next: Row


class LaneJudge(CallsJudge):
    """Compares each delivery with the dead letters that failed before it."""

    __slots__ = ()

    def next_call(self, calls: Calls, row: Row) -> Iterable[Finding]:
        if calls.failed:
            self.opportunities += 1
        return self._skipped(calls, row)

    def same_call(self, calls: Calls, row: Row) -> Iterable[Finding]:
        found = self._skipped(calls, row)
        if found:
            self.opportunities += 1
        return found

    def _skipped(self, calls: Calls, row: Row) -> tuple[Finding, ...]:
        skipped = sorted(offset for offset in calls.failed if offset < (row.queue_offset or 0))
        if not skipped:
            return ()
        found = Skipped(calls.failed[skipped[0]], row)
        for offset in skipped:  # told once
            del calls.failed[offset]
        return (found,)


judge = LaneJudge


def explain(found: Skipped) -> str:
    failed, new = found.failed, found.next
    ended = "was refused" if failed.outcome is Outcome.REFUSED else "was not answered"
    return (
        f"{who(new)} went on with offset {new.queue_offset} of {new.lane} at {at(new)}, although the dead letter of "
        f"offset {failed.queue_offset}, sent at {at(failed)}, {ended}"
    )
