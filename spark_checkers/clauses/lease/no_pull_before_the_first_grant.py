"""What breaks LSE-11, planted in a history."""

from spark_checkers.changes import drop
from spark_checkers.planting import Changes, Trace, defect
from specs.vocabulary import Kind


@defect()
def pull_without_lease(trace: Trace) -> Changes:
    """The first grant of a client is missing."""
    for work in trace.works:
        locks = [row for row in trace.lanes[work.add.lane] if row.kind is Kind.LOCK]
        for pull in work.of(Kind.PULL)[:1]:
            before = (row for row in locks if row.seq_begin < pull.seq_begin)
            gone = [row for row in before if row.client_id == work.add.client_id]
            if gone:
                yield drop(*gone).about(work.add, pull)
