"""What breaks RTY-6, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import MS, Given, alter, copy, drop
from spark_checkers.planting import RECORDED, Changes, Trace, defect
from specs.vocabulary import Kind, Outcome


def call_of_another_lane(trace: Trace, row: Given) -> Given | None:
    """The last one of its client that ended before the row did, and may have been suspended."""
    found = [
        other
        for other in trace.of(Kind.DELIVER)
        if other.client_id == row.client_id and other.group == row.group and other.lane != row.lane
        if other.seq_end is not None and other.seq_end < row.seq_end and not other.reconsume_times
    ]
    return found[-1] if found and found[-1].started_us > row.started_us - 500 * MS else None


@defect(**RECORDED)
def held_back(trace: Trace) -> Changes:
    """A lane waits while another one rests."""
    # No call of a lane follows one that went well until the bound is over, and another lane was busy all the time.
    for work, before, after in places.called_next(trace):
        other = call_of_another_lane(trace, before)
        if other is None:
            continue
        until_us = max(before.ended_us, other.started_us) + trace.config.schedule_slack_ms * MS
        late = places.at_rest(trace, work, before, until_us)
        if late is not None:
            gone = [row for row in work.calls if row.seq_begin > before.seq_begin]
            rested = alter(other, outcome=Outcome.SUSPEND, suspend_ms=30_000)
            yield drop(*gone) + rested + copy(after, late)
