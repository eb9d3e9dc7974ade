"""What breaks CMT-13, planted in a history."""

from spark_checkers.changes import MS, drop
from spark_checkers.planting import Changes, Trace, defect
from specs.vocabulary import Kind


@defect()
def released_without_a_commit(trace: Trace) -> Changes:
    """A lane is given back unreported."""
    slack_us = trace.config.guard_slack_ms * MS
    for work in trace.works:
        unlock = next(iter(work.of(Kind.UNLOCK)), None)
        if unlock is None or any(row.detail for row in work.of(Kind.COMMIT)):
            continue
        over_us = (work.drop or unlock).started_us - slack_us
        finished = [row for row in work.finished if row.ended_us <= over_us]
        if not finished:
            continue
        last = max(finished, key=lambda row: row.queue_offset)
        told = [row for row in work.commits if row.value > last.queue_offset]
        if told and all(row.seq_begin < unlock.seq_begin for row in told):
            yield drop(*told).about(last, unlock)
