"""What breaks LSE-16, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import ANOTHER, MS, STRANGER, STRANGERS_WORK, elsewhere
from spark_checkers.planting import Changes, Trace, defect
from specs.vocabulary import Kind, Outcome


@defect()
def lease_kept(trace: Trace) -> Changes:
    """A dropped lane is not given back."""
    config = trace.config
    dropped = {"kind": Kind.DROP, "incarnation": STRANGERS_WORK}
    for lock in trace.of(Kind.LOCK):
        late = places.later(trace, lock, config.schedule_slack_ms * MS)
        if late is None:
            continue
        after_us = (late.ended_us or late.started_us) - (lock.ended_us or 0)
        if after_us < (config.broker_lease_ms // 2) * MS:
            yield (
                elsewhere(lock, lock, STRANGER, Outcome.OK)
                + elsewhere(lock, lock, STRANGER, Outcome.OK, **dropped)
                + elsewhere(lock, late, ANOTHER, Outcome.REFUSED)
            )
