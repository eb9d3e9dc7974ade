"""What breaks CMT-4, planted in a history."""

from spark_checkers.changes import Change, Given, alter, begin, copy
from spark_checkers.planting import Changes, Pairs, Trace, defect, lookalike, pairs
from specs.clauses.rows import acknowledges, ended_before
from specs.vocabulary import Kind


def ascending(trace: Trace) -> Pairs:
    """Two commits of an incarnation, the second one of which is higher, and lasts for a while."""
    for work in trace.works:
        for before, row in pairs(work.commits):
            lasts = row.seq_end is not None and row.seq_end > row.seq_begin
            if ended_before(before, row) and lasts and before.value < row.value:
                yield before, row


@defect()
def commit_rewinds(trace: Trace) -> Changes:
    """A commit goes back."""
    # Behind one that went the same way: a pull may carry an older value than the timer's commit before it.
    for work in trace.works:
        ends = [row.queue_offset + 1 for row in work.calls if acknowledges(row)]
        for before, row in pairs(work.commits, lambda row: row.view):
            lower = max((end for end in ends if end < before.value), default=0)
            if ended_before(before, row) and lower > (work.add.value or 0):
                yield alter(row, value=lower).about(before)


@lookalike(ascending)
def overlapping_commits(before: Given, row: Given) -> Change:
    """A lower commit overlaps a higher one."""
    return copy(row, begin(row), value=before.value).about(row)


@lookalike()
def corrected_commit(trace: Trace) -> Changes:
    """A broker's correction moves a commit back."""
    for work in trace.works:
        commits = [row for row in work.of(Kind.COMMIT) if row.value]
        for row in commits[1:-1]:
            yield alter(row, value=row.value - 1, detail="corrected")
