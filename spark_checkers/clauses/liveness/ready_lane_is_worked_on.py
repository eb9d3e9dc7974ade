"""What breaks LIV-5, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import MS, copy, drop
from spark_checkers.planting import RECORDED, Changes, Trace, defect


@defect(**RECORDED)
def called_late(trace: Trace) -> Changes:
    """A lane's next message is called late."""
    # No call of a lane follows one that went well until the bound is over, though the next message was there.
    for work, before, after in places.called_next(trace):
        until_us = before.ended_us + trace.config.schedule_slack_ms * MS
        late = places.at_rest(trace, work, before, until_us)
        if late is not None:
            gone = [row for row in work.calls if row.seq_begin > before.seq_begin]
            yield drop(*gone) + copy(after, late)
