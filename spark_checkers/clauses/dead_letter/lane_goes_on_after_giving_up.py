"""What breaks DLQ-9, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import MS, alter, drop
from spark_checkers.planting import Changes, Trace, defect
from specs.vocabulary import Kind, Outcome


@defect()
def lane_stands_still(trace: Trace) -> Changes:
    """The lane waits after a message was given up."""
    # No call follows a dead letter for longer than the bound, though (as is said now) the messages were there.
    works = {(work.add.lane, work.add.incarnation): work for work in trace.works}
    for last, letter, _ in places.given_up(trace):
        work = works[letter.lane, letter.incarnation]
        until_us = letter.ended_us + trace.config.schedule_slack_ms * MS
        late = next((row for row in work.calls if row.started_us > until_us), None)
        pulls = [row for row in work.of(Kind.PULL) if row.outcome is Outcome.OK]
        there = [row for row in pulls if row.value is not None and row.seq_end is not None]
        there = [row for row in there if row.seq_end < letter.seq_end]
        lock = places.grant(trace, letter, letter.ended_us - MS, until_us)
        if late is None or not there or lock is None or not last.reconsume_times:
            continue
        steps = work.of(Kind.DELIVER, Kind.DEAD_LETTER)
        gone = [row for row in steps if letter.seq_begin < row.seq_begin < late.seq_begin]
        more = alter(there[-1], value=max(there[-1].value, late.queue_offset + 1))
        yield (more + drop(*gone)).about(letter, late)
