"""What breaks SND-7, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import alter
from spark_checkers.planting import Changes, Trace, defect, lookalike


@defect()
def seen_before_its_level(trace: Trace) -> Changes:
    """A delayed message is there at once."""
    last = len(trace.config.delay_levels.split())
    for send, read in places.reads(trace):
        yield alter(send, delay_level=last).about(read)


@lookalike()
def no_level_at_all(trace: Trace) -> Changes:
    """A level below 0 waits for nothing."""
    told = [row for row in trace.rows if row.delay_level is not None]
    for send, _ in places.reads(trace):
        same = (row for row in told if row.message_id == send.message_id)
        yield alter(send, *same, delay_level=-1)
