"""A listener that throws, or returns nothing, has asked for its batch again, as if it had said SUSPEND.

So the lane does not go on beyond a message of such a batch before it came again (unless it was given up, or the broker
removed it on purpose), and none of the batch comes again before the suspend time has passed: what the listener had set
before it threw, else the consumer's own. What had used up its retries, and may have been given up where nobody saw it,
waits until a call has ended in ROLLBACK, or has begun of which nobody knows how it ended, nor that it was in auto mode:
a manual ROLLBACK replays it soon. What follows from a SUSPEND is said by ORD-3 and RTY-1; this clause says that a throw
and a null are one. Its counter is RTY-3's matter."""

import numpy as np

from specs.clauses.premises import NO_RESET, ORDERLY
from specs.clauses.retry.next_call_starts_at_lowest_suspended import lowest_of_each, passed_by
from specs.clauses.retry.no_redelivery_before_suspend import is_too_early
from specs.clauses.terms import Finding, Findings, Row, Rows, at, over_us, who
from specs.facts.calls import CALL_COLUMNS, CALL_KINDS, Calls
from specs.facts.columns import NOWHERE
from specs.plan.traits import Stake, Trait
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "RTY-7"
TITLE = "a throw or a null counts as SUSPEND"
STATEMENT = "A listener call that throws or returns nothing counts as SUSPEND: its batch comes again, after the pause."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (ORDERLY, NO_RESET)
SOURCES = ("docs/sources.md#orderly-loop",)
REFINES = ("ORD-3", "RTY-1")
STAKES = (Stake(Trait.THROW),)
KINDS = CALL_KINDS
SETTINGS = ("max_reconsume_times", "suspend_ms")
NEEDS = frozenset({Kind.DELIVER})
HEEDED = frozenset({Kind.PULL, Kind.TRIM})
COLUMNS = (*CALL_COLUMNS, "suspend_ms")

NO_RESULT = frozenset({Outcome.NULL, Outcome.THREW})


class NotSuspended(Finding):
    """failed: a message of the call without a result. dead_letter: why it is certainly still owed, if it was tried.

    early: it came again, but too soon; else the lane went on beyond it.
    """

    failed: Row
    dead_letter: Row | None
    next: Row
    early: bool


def judge(rows: Rows, findings: Findings) -> None:
    """What comes again after a call without a result, and what goes on beyond it."""
    calls = rows.shared(Calls)
    without = rows.ended_as(*NO_RESULT)
    again, before = (each[without[calls.come_again[1]]] for each in calls.come_again)
    early = is_too_early(rows, before, again)
    nothing = np.full(int(early.sum()), NOWHERE, np.int64)
    findings.broken(
        NotSuspended, {"early": True}, failed=before[early], dead_letter=nothing, next=again[early]
    )
    beyond = passed_by(rows, calls, without[calls.owed.row])
    message, beyond = lowest_of_each(rows, calls, beyond)
    findings.at_stake(np.union1d(again, beyond))
    told = ~np.isin(beyond, again[early])
    message, beyond = message[told], beyond[told]
    letter = calls.owed.failed_by(rows, message, beyond)
    row = calls.owed.row[message]
    findings.broken(NotSuspended, {"early": False}, failed=row, dead_letter=letter, next=beyond)


def explain(found: NotSuspended) -> str:
    failed, new = found.failed, found.next
    how = "returned nothing" if failed.outcome is Outcome.NULL else "threw"
    ended = f"at {over_us(failed) / 1_000_000:.3f} s the listener {how} for offset {failed.queue_offset}"
    said = f"{ended} of {failed.lane}, which counts as SUSPEND"
    if found.early:
        return f"{said}, but {who(new)} delivered it again at {at(new)} already"
    return f"{said}, but {who(new)} went on with offset {new.queue_offset} at {at(new)}"
