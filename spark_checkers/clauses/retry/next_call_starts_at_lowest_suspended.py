"""What breaks RTY-4, planted in a history."""

from spark_checkers.changes import copy
from spark_checkers.planting import Changes, Trace, defect, triples
from specs.clauses.rows import acknowledges
from specs.vocabulary import LISTENER_SUSPENDS, Outcome


@defect()
def start_before_suspended(trace: Trace) -> Changes:
    """A call starts before the suspended message."""
    # A message that was finished comes in the place of the suspended one that follows it.
    for work in trace.works:
        if any(row.outcome is Outcome.ROLLBACK for row in work.calls):
            continue
        for before, row, again in triples(work.calls):
            suspended = row.outcome in LISTENER_SUSPENDS and row.seq_end is not None
            follows = before.queue_offset + 1 == row.queue_offset == again.queue_offset
            if suspended and follows and acknowledges(before):
                yield copy(before, row).about(row)
