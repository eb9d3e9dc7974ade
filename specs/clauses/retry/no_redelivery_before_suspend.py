"""A suspended message does not come again before its suspend time has passed.

The time counts from the end of the call that asked for it (SUSPEND, null, a throw, or a manual ROLLBACK). It is what
the listener asked for, else the consumer's own, clamped to 10..30000 ms. Both sides count in whole milliseconds, so a
redelivery refutes when it comes at least one millisecond early. Every suspended message is remembered until it comes
again, whatever of the lane comes in between: several keys may be suspended at once. One that was given up waits for
nothing any more: a ROLLBACK may replay it soon. One that had used up its retries, and may have been given up where
nobody saw it, waits until a call has ended in what may be a manual ROLLBACK, or has begun of which nobody knows how it
ended, nor that it was in auto mode. A dead letter that was refused gave nothing up, and alone excuses nothing. Nothing
is remembered across an ADD, a reset, or a pull that was told to go on further back: a call that began before is of an
earlier life, and asks for nothing when it ends. Says nothing about another incarnation, nor about coming late.
"""

from specs.clauses.premises import IN_PLACE
from specs.clauses.terms import Finding, Findings, Row, Rows, at, ms, over_us, who
from specs.facts.calls import CALL_COLUMNS, CALL_KINDS, Calls, pause_ms
from specs.facts.columns import MS, Ints, Mask
from specs.vocabulary import Key, Kind, Party

ID = "RTY-1"
TITLE = "no redelivery before the suspend time"
STATEMENT = "An incarnation does not redeliver a suspended message before its suspend time (10..30000 ms) has passed."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (IN_PLACE,)
SOURCES = ("docs/sources.md#orderly-loop",)
KINDS = CALL_KINDS
SETTINGS = ("max_reconsume_times", "suspend_ms")
NEEDS = frozenset({Kind.DELIVER})
HEEDED = frozenset({Kind.PULL})
COLUMNS = (*CALL_COLUMNS, "suspend_ms")


class TooEarly(Finding):
    suspended: Row
    again: Row
    promised_ms: int


def judge(rows: Rows, findings: Findings) -> None:
    """What comes again, beside the delivery that put it back."""
    again, before = rows.shared(Calls).come_again
    findings.at_stake(again)
    early = is_too_early(rows, before, again)
    again, before = again[early], before[early]
    promised = pause_ms(rows, before)
    findings.broken(TooEarly, {"promised_ms": promised}, suspended=before, again=again)


def is_too_early(rows: Rows, before: Ints, again: Ints) -> Mask:
    """Do these deliveries come at least a millisecond before the pause is over that those before them asked for?"""
    due = rows.ended[before] + (pause_ms(rows, before) - 1) * MS
    found: Mask = rows.started[again] <= due
    return found


def explain(found: TooEarly) -> str:
    before, again = found.suspended, found.again
    waited = again.started_us - over_us(before)
    return (
        f"{who(again)} delivered offset {again.queue_offset} of {again.lane} again at {at(again)}, {ms(waited)} after "
        f"it had ended {before.outcome}; it had to wait {found.promised_ms} ms"
    )
