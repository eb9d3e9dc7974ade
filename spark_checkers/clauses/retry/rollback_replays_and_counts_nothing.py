"""What breaks RTY-9, planted in a history."""

from spark_checkers.changes import alter
from spark_checkers.planting import Changes, Trace, defect, pairs
from specs.clauses.rows import is_manual
from specs.vocabulary import Outcome


@defect(by_hand=True)
def rollback_counted(trace: Trace) -> Changes:
    """A replayed message was counted."""
    for work in trace.works:
        for row, again in pairs(work.calls):
            rolled_back = row.outcome is Outcome.ROLLBACK and is_manual(row)
            replayed = again.queue_offset <= row.queue_offset and row.seq_end is not None
            if rolled_back and replayed and again.reconsume_times is not None:
                yield alter(again, reconsume_times=again.reconsume_times + 1).about(row)
