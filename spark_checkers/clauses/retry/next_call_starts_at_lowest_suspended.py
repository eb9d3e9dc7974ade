"""What breaks RTY-4, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers.planting import Changes, Mutant, Trace
from specs.clauses.rows import acknowledges
from specs.vocabulary import LISTENER_SUSPENDS, Outcome

CLAUSE = "RTY-4"


def start_before_suspended(trace: Trace) -> Changes:
    """A message that was finished comes in the place of the suspended one that follows it."""
    for calls in trace.calls:
        if any(row.outcome is Outcome.ROLLBACK for row in calls):
            continue
        for before, suspended, again in zip(calls, calls[1:], calls[2:], strict=False):
            gone = (
                before.queue_offset is not None
                and before.queue_offset + 1 == suspended.queue_offset
            )
            fine = (
                acknowledges(before)
                and suspended.outcome in LISTENER_SUSPENDS
                and suspended.seq_end is not None
            )
            if gone and fine and again.queue_offset == suspended.queue_offset:
                yield partial(
                    lambda b, s: trace.with_more([trace.another(b, s, 1)], [s.seq_begin]),
                    before,
                    suspended,
                )


DEFECTS = (
    Mutant(
        "start-before-suspended",
        "RTY-4",
        "a call starts before the suspended message",
        start_before_suspended,
    ),
)
