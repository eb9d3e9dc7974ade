"""What breaks ORD-13, planted in a history."""

from spark_checkers.changes import copy
from spark_checkers.planting import Changes, Trace, defect
from specs.vocabulary import Outcome


@defect()
def call_after_drop(trace: Trace) -> Changes:
    """A call starts after the lane was dropped."""
    for work in trace.works:
        done = [row for row in work.calls if row.outcome is Outcome.SUCCESS]
        if done and work.drop is not None:
            yield copy(done[-1], work.drop).about(work.drop)
