"""What breaks ORD-17, planted in a history."""

from spark_checkers.changes import drop
from spark_checkers.planting import Changes, Trace, defect, grouped, triples
from specs.vocabulary import Kind


@defect()
def never_given(trace: Trace) -> Changes:
    """Nobody is given a message that lies in between."""
    # All that was done in the lane with one message is gone, though an incarnation was given the ones around it.
    done = trace.of(Kind.DELIVER, Kind.DEAD_LETTER)
    given = grouped(done, lambda row: (row.lane, row.queue_offset))
    for work in trace.works:
        for before, row, beyond in triples(work.calls):
            sent, offset = trace.send_of(row), row.queue_offset
            between = before.queue_offset + 1 == offset == beyond.queue_offset - 1
            usual = sent is not None and sent.seq_end is not None and not sent.delay_level
            if between and usual and given[row.lane, offset] == [row]:
                yield drop(row).about(sent, before, beyond)
