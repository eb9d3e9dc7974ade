"""What breaks LSE-14, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import ANOTHER, MS, STRANGER, elsewhere
from spark_checkers.planting import Changes, Trace, defect
from specs.vocabulary import Kind, Outcome


@defect()
def outlived_lease(trace: Trace) -> Changes:
    """A lease lives on when its time is over."""
    for lock in trace.of(Kind.LOCK):
        late = places.later(trace, lock, (trace.config.broker_lease_ms + 1) * MS)
        if late is not None:
            granted = elsewhere(lock, lock, STRANGER, Outcome.OK)
            yield granted + elsewhere(lock, late, ANOTHER, Outcome.REFUSED)
