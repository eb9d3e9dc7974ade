"""What breaks ORD-16, planted in a history."""

from spark_checkers.changes import MS, begun_beside
from spark_checkers.planting import Changes, Trace, defect


@defect()
def two_workers(trace: Trace) -> Changes:
    """A second worker's call begins during a call."""
    # During a call that lasts no longer than its lease.
    config = trace.config
    lasts_us = (config.broker_lease_ms - config.client_lease_ms - config.guard_slack_ms) * MS
    for work in trace.works:
        for row in work.first_tries:
            if row.seq_end > row.seq_begin and row.ended_us - row.started_us < lasts_us:
                yield begun_beside(row)
