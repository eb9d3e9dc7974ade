"""What breaks LSE-15, planted in a history."""

from spark_checkers.changes import begin, insert
from spark_checkers.planting import Changes, Trace, defect
from specs.vocabulary import Kind, Outcome


@defect()
def unlock_during_call(trace: Trace) -> Changes:
    """A lane is given back while its call runs."""
    for work in trace.works:
        for row in work.calls:
            if row.seq_end is not None and row.outcome is Outcome.SUCCESS:
                yield insert(Kind.UNLOCK, row, begin(row), outcome=Outcome.SENT).about(row)
