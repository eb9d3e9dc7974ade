"""What breaks LSE-2, planted in a history."""

from spark_checkers.changes import MS, begun_beside
from spark_checkers.planting import Changes, Trace, defect
from specs.clauses.rows import ended_before


@defect()
def two_processors(trace: Trace) -> Changes:
    """A second client's call begins during a call."""
    # While the lease is young.
    lease_us = min(trace.config.broker_lease_ms, trace.config.client_lease_ms) * MS
    for work in trace.works:
        locks = trace.locks(work.add.lane, work.add.client_id)
        for row in work.first_tries:
            for lock in [lock for lock in locks if ended_before(lock, row)][-1:]:
                is_young = row.started_us - lock.started_us < lease_us // 2
                if is_young and row.seq_end > row.seq_begin:
                    yield begun_beside(row)
