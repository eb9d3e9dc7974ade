"""What breaks ORD-4, planted in a history."""

from spark_checkers.changes import drop
from spark_checkers.planting import Changes, Trace, defect
from specs.vocabulary import Kind, Outcome


@defect()
def skip_at_handover(trace: Trace) -> Changes:
    """A new owner leaves its first message out."""
    # Nothing is done with the first message of all that follows a look-up, which nobody had been given before.
    for work in trace.works:
        add, lane = work.add, trace.lanes[work.add.lane]
        before = [row for row in lane if row.seq_begin < add.seq_begin]
        looked = [row for row in before if row.kind is Kind.FETCH_OFFSET]
        given = {row.queue_offset for row in before if row.kind is Kind.DELIVER}
        if not looked or add.value in given or (add.queue, add.value) not in trace.sent:
            continue
        last = looked[-1]
        known = last.outcome is Outcome.OK and last.value == add.value
        steps = work.of(Kind.DELIVER, Kind.DEAD_LETTER)
        gone = [row for row in steps if row.queue_offset == add.value]
        on = [row for row in work.calls if row.queue_offset != add.value]
        if known and last.client_id == add.client_id and gone and gone[0] is work.calls[0] and on:
            yield drop(*gone).about(last, on[0])
