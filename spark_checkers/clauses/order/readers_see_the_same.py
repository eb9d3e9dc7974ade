"""What breaks ORD-7, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import alter
from spark_checkers.planting import Changes, Trace, defect, grouped, place
from specs.vocabulary import Kind


@defect()
def another_message_there(trace: Trace) -> Changes:
    """A group is given another message than the drain."""
    # It is given to the first who gets a message there, while no broker has crashed.
    crashed = any(row.broker for row in trace.of(Kind.CRASH))
    calls = {} if crashed else grouped(trace.of(Kind.DELIVER), place)
    for _send, read in places.reads(trace):
        first, *_ = calls.get(place(read), [None])
        if first is not None and first.message_id == read.message_id:
            yield alter(first, message_id=f"{read.message_id}-other").about(read)
