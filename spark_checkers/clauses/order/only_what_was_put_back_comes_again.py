"""What breaks ORD-10, planted in a history."""

from spark_checkers.changes import copy
from spark_checkers.planting import Changes, Trace, defect, pairs
from specs.clauses.rows import ended_before, is_manual
from specs.vocabulary import Outcome


@defect()
def finished_comes_again(trace: Trace) -> Changes:
    """A finished message is delivered again."""
    for work in trace.works:
        for before, row in pairs(work.calls):
            done = before.outcome is Outcome.SUCCESS and not is_manual(before)
            if done and ended_before(before, row) and before.op_id != row.op_id:
                yield copy(before, before, attempt=2).about(before)
