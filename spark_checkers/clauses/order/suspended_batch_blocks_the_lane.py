"""What breaks ORD-3, planted in a history."""

from spark_checkers.changes import copy
from spark_checkers.planting import Changes, Trace, defect, pairs
from specs.vocabulary import LISTENER_SUSPENDS, Outcome


@defect()
def overtake_suspended(trace: Trace) -> Changes:
    """The next message is delivered while one is suspended."""
    for work in trace.works:
        for index, (row, again) in enumerate(pairs(work.calls), start=1):
            suspended = row.outcome in LISTENER_SUSPENDS and row.seq_end is not None
            same = again.queue_offset == row.queue_offset
            if not suspended or not same or again.started_us <= row.ended_us:
                continue
            beyond = (c for c in work.calls[index:] if c.queue_offset > row.queue_offset)
            later = next(beyond, None)
            if later is not None and not later.reconsume_times:
                done = {"outcome": Outcome.SUCCESS, "suspend_ms": None}
                yield copy(later, row, **done).about(row)
