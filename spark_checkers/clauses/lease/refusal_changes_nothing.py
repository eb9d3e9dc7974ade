"""What breaks LSE-7, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import ANOTHER, MS, STRANGER, elsewhere
from spark_checkers.planting import Changes, Trace, defect
from specs.vocabulary import Kind, Outcome


@defect()
def prolonged_lease(trace: Trace) -> Changes:
    """A refusal makes the owner's lease longer."""
    limit_us = (trace.config.broker_lease_ms + 1) * MS
    for lock in trace.of(Kind.LOCK):
        early, late = (places.later(trace, lock, us) for us in (limit_us // 2, limit_us))
        if late is not None and early.seq_begin < late.seq_begin:
            granted = elsewhere(lock, lock, STRANGER, Outcome.OK)
            refused = elsewhere(lock, early, ANOTHER, Outcome.REFUSED)
            yield granted + refused + elsewhere(lock, late, ANOTHER, Outcome.REFUSED)
