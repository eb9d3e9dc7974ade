"""What breaks LSE-3, planted in a history."""

from spark_checkers.changes import MS, drop
from spark_checkers.planting import Changes, Trace, defect


@defect()
def stale_lease(trace: Trace) -> Changes:
    """Renewals are missing, and the client goes on."""
    limit_us = (trace.config.client_lease_ms + trace.config.guard_slack_ms + 2) * MS
    for work in trace.works:
        locks, calls = trace.locks(work.add.lane, work.add.client_id), work.calls
        before = [lock for lock in locks if calls and lock.seq_begin < calls[0].seq_begin]
        if not before:
            continue
        over_us = before[-1].ended_us + limit_us
        stale = next((call for call in calls[1:] if call.started_us > over_us), None)
        if stale is not None:
            after = (lock for lock in locks if lock.seq_begin > calls[0].seq_begin)
            gone = [lock for lock in after if lock.seq_end < stale.seq_begin]
            if gone:
                yield drop(*gone).about(before[-1], stale)
