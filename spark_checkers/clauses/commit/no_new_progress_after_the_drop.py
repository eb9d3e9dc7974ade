"""What breaks CMT-6, planted in a history."""

from spark_checkers.changes import Change, Given, insert
from spark_checkers.planting import Pairs, Trace, defect, lookalike
from specs.vocabulary import Kind, Outcome


def dropped(trace: Trace) -> Pairs:
    """(the drop of an incarnation, the highest commit before it), where a broker corrected none."""
    for work in trace.works:
        before = [row for row in work.commits if row.value and row.seq_begin < work.until]
        corrected = any(row.detail for row in work.of(Kind.COMMIT))
        if work.drop is not None and before and work.rows[0] is work.add and not corrected:
            yield work.drop, max(before, key=lambda row: row.value)


def commit_after(drop: Given, value: int) -> Change:
    return insert(Kind.COMMIT, drop, drop, outcome=Outcome.SENT, value=value).about(drop)


@defect(dropped)
def progress_after_the_drop(drop: Given, commit: Given) -> Change:
    """More is committed after the drop."""
    return commit_after(drop, commit.value + 1)


@lookalike(dropped)
def told_again(drop: Given, commit: Given) -> Change:
    """The last offset is committed again after the drop."""
    return commit_after(drop, commit.value)
