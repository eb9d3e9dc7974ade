"""What breaks CMT-1, planted in a history."""

from itertools import zip_longest

from spark_checkers.changes import alter
from spark_checkers.planting import Changes, Trace, defect, grouped
from specs.clauses.rows import acknowledges, ended_before
from specs.vocabulary import Kind


@defect()
def commit_past_unfinished(trace: Trace) -> Changes:
    """A commit passes a running message."""
    # Past a message that is given for the first time: an earlier owner may have finished others.
    given = grouped(trace.of(Kind.DELIVER), lambda row: (row.lane, row.queue_offset))
    for work in trace.works:
        done = (row for row in work.calls if acknowledges(row))
        finished = {
            row.queue_offset: row for row in done if given[row.lane, row.queue_offset][0] is row
        }
        for row, after in zip_longest(work.commits, work.commits[1:]):
            sent, call = trace.sent.get((row.queue, row.value)), finished.get(row.value)
            ascends = after is None or after.value > row.value
            if sent is None or call is None or not ascends:
                continue
            if ended_before(sent, row) and call.seq_end > row.seq_begin:
                yield alter(row, value=row.value + 1).about(sent)
