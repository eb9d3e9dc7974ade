"""What breaks CMT-5, planted in a history."""

from spark_checkers.changes import MS, copy
from spark_checkers.planting import Changes, Trace, defect, pairs
from specs.vocabulary import Kind


@defect()
def late_commit(trace: Trace) -> Changes:
    """The old owner commits after the new one's grant."""
    # After a handover in good order the old owner repeats its last commit.
    lease_us = trace.config.broker_lease_ms * MS
    for lane, rows in trace.lanes.items():
        for lock, other in pairs(trace.locks(lane)):
            theirs = [row for row in rows if row.client_id == lock.client_id]
            unlocks = (row.seq_begin for row in theirs if row.kind is Kind.UNLOCK)
            given_back = any(lock.seq_end < seq < other.seq_end for seq in unlocks)
            commits = [row for row in theirs if row.kind is Kind.COMMIT and row.incarnation]
            commits = [row for row in commits if row.seq_begin < other.seq_begin]
            in_time = other.ended_us <= lock.started_us + lease_us
            if lock.client_id != other.client_id and given_back and commits and in_time:
                yield copy(commits[-1], other).about(other)
