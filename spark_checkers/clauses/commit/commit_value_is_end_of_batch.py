"""What breaks CMT-2, planted in a history."""

from spark_checkers.changes import MS, drop
from spark_checkers.planting import Changes, Trace, defect
from specs.clauses.rows import acknowledges
from specs.vocabulary import Kind


@defect()
def lost_commits(trace: Trace) -> Changes:
    """An incarnation commits nothing."""
    config = trace.config
    bound = (config.persist_first_ms + config.persist_ms + config.schedule_slack_ms + 1) * MS
    for work in trace.works:
        done = [row for row in work.calls if acknowledges(row) and row.seq_end]
        commits = work.of(Kind.COMMIT)
        if done and commits:
            since_us = done[0].ended_us + bound
            busy = work.of(Kind.DELIVER, Kind.PULL)
            late = next((row for row in busy if row.started_us > since_us), None)
            if late is not None:
                yield drop(*commits).about(work.add, done[0], late)
