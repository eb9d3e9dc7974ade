"""What breaks ORD-5, planted in a history."""

from spark_checkers.changes import alter
from spark_checkers.planting import Changes, Trace, defect
from specs.vocabulary import Kind


@defect()
def below_the_start(trace: Trace) -> Changes:
    """A new owner begins one message too early."""
    for work in trace.works:
        told = [row for row in work.rows if row.detail == "corrected"]
        told += work.of(Kind.FETCH_OFFSET)
        if work.calls and work.add.value and all(row.value == work.add.value for row in told):
            first = work.calls[0]
            below = {"queue_offset": work.add.value - 1, "key_seq": None}
            yield alter(first, **below, message_id=f"{first.message_id}-below").about(work.add)
