"""What breaks ORD-14, planted in a history."""

from spark_checkers.changes import by_whom, copy, drop, just_before
from spark_checkers.planting import Changes, Trace, defect
from specs.clauses.rows import is_manual
from specs.vocabulary import Kind, Outcome


@defect()
def handover_without_report(trace: Trace) -> Changes:
    """An old owner reports nothing at all."""
    # The new owner begins with the first of the messages that the old one had finished.
    for work in trace.works:
        if work.drop is None:
            continue
        calls = [row for row in work.calls if row.seq_begin < work.until]
        done = [row for row in calls if row.outcome is Outcome.SUCCESS and not is_manual(row)]
        lane = [row for row in trace.lanes[work.add.lane] if row.seq_begin > work.until]
        unlock = next((row for row in lane if row.kind is Kind.UNLOCK), None)
        add = next((row for row in lane if row.kind is Kind.ADD), None)
        if len(done) < 2 or unlock is None or add is None:
            continue
        theirs = (row for row in lane if row.incarnation == add.incarnation)
        first = next((row for row in theirs if row.kind is Kind.DELIVER), None)
        handed = unlock.client_id == work.drop.client_id and unlock.seq_begin < add.seq_begin
        if handed and first is not None and done[0].queue_offset < calls[-1].queue_offset:
            again = copy(done[0], just_before(first), **by_whom(first))
            yield (drop(*work.of(Kind.COMMIT)) + again).about(work.drop)
