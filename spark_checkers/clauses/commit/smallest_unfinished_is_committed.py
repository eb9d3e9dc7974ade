"""What breaks CMT-10, planted in a history."""

from dataclasses import replace

from spark_checkers.changes import alter
from spark_checkers.planting import CONCURRENT, KEY_ORDERED, Changes, Trace, defect
from specs.clauses.rows import acknowledges


@defect(**CONCURRENT)
def commit_past_the_smallest(trace: Trace) -> Changes:
    """A commit passes a call that runs."""
    for work in trace.works:
        calls = [row for row in work.calls if acknowledges(row)]
        for row in work.commits:
            running = [c for c in calls if c.seq_begin < row.seq_begin < (c.seq_end or 0)]
            if running:
                yield alter(row, value=running[-1].queue_offset + 1).about(running[-1])


commit_past_a_key = replace(commit_past_the_smallest, name="commit-past-a-key", **KEY_ORDERED)
