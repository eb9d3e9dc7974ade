"""What breaks CMT-3, planted in a history."""

from spark_checkers.changes import alter, insert
from spark_checkers.planting import Changes, Trace, defect
from specs.vocabulary import Kind, Outcome


@defect()
def committed_in_manual_mode(trace: Trace) -> Changes:
    """A SUCCESS in manual mode is committed."""
    for work in trace.works:
        for row in work.finished if work.of(Kind.COMMIT) else ():
            said = {"outcome": Outcome.SENT, "value": row.queue_offset + 1}
            yield alter(row, commit_mode="manual") + insert(Kind.COMMIT, row, row, **said)
