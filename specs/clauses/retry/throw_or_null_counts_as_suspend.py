"""A listener that throws, or returns nothing, has asked for its batch again, as if it had said SUSPEND.

So the lane does not go on beyond a message of such a batch before it came again (unless it was given up, or the broker
removed it on purpose), and none of the batch comes again before the suspend time has passed: what the listener had set
before it threw, else the consumer's own. What had used up its retries, and may have been given up where nobody saw it,
waits until a call has ended in ROLLBACK, or has begun of which nobody knows how it ended, nor that it was in auto mode:
a manual ROLLBACK replays it soon. What follows from a SUSPEND is said by ORD-3 and RTY-1; this clause says that a throw
and a null are one. Its counter is RTY-3's matter."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.calls import CALL_KINDS, Calls, CallsJudge
from specs.clauses.judging import NOTHING, Finding
from specs.clauses.premises import NO_RESET, NOT_REMOVED, ORDERLY
from specs.clauses.retry.no_redelivery_before_suspend import suspend_ms
from specs.clauses.rows import over_us
from specs.clauses.words import MS, at, who
from specs.history.row import Row
from specs.plan.traits import Stake, Trait
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "RTY-7"
TITLE = "a throw or a null counts as SUSPEND"
STATEMENT = "A listener call that throws or returns nothing counts as SUSPEND: its batch comes again, after the pause."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (ORDERLY, NO_RESET, NOT_REMOVED)
SOURCES = ("docs/sources.md#orderly-loop",)
REFINES = ("ORD-3", "RTY-1")
STAKES = (Stake(Trait.THROW),)
KINDS = CALL_KINDS
SETTINGS = ("max_reconsume_times", "suspend_ms")
NEEDS = frozenset({Kind.DELIVER})

NO_RESULT = frozenset({Outcome.NULL, Outcome.THREW})


@dataclass(frozen=True, slots=True)
class NotSuspended(Finding):
    """failed: a message of the call without a result. dead_letter: why it is certainly still owed, if it was tried.

    early: it came again, but too soon; else the lane went on beyond it.
    """

    failed: Row
    dead_letter: Row | None
    next: Row
    early: bool


class LaneJudge(CallsJudge):
    """Looks at what follows a call that had no result."""

    __slots__ = ()

    PUTS_BACK = NO_RESULT

    def next_call(self, calls: Calls, row: Row) -> Iterable[Finding]:
        return self.same_call(calls, row)

    def same_call(self, calls: Calls, row: Row) -> Iterable[Finding]:
        offset = row.queue_offset or 0
        before = calls.owed.get(offset)
        passed = [each for each in self.due(calls, row) if (each.queue_offset or 0) < offset]
        if before is None and not passed:
            return NOTHING
        self.opportunities += 1
        if before is not None and before.ended_us is not None:
            promised = suspend_ms(before, self.config.suspend_ms)
            if row.started_us <= before.ended_us + (promised - 1) * MS:
                return (NotSuspended(before, None, row, early=True),)
        if not passed:
            return NOTHING
        failed = passed[0]
        found = NotSuspended(failed, calls.failed.get(failed.queue_offset or 0), row, early=False)
        calls.passed_by(offset)
        return (found,)


judge = LaneJudge


def explain(found: NotSuspended) -> str:
    failed, new = found.failed, found.next
    how = "returned nothing" if failed.outcome is Outcome.NULL else "threw"
    ended = f"at {over_us(failed) / 1_000_000:.3f} s the listener {how} for offset {failed.queue_offset}"
    said = f"{ended} of {failed.lane}, which counts as SUSPEND"
    if found.early:
        return f"{said}, but {who(new)} delivered it again at {at(new)} already"
    return f"{said}, but {who(new)} went on with offset {new.queue_offset} at {at(new)}"
