"""What breaks RTY-5, planted in a history."""

from spark_checkers.changes import drop
from spark_checkers.planting import Changes, Trace, defect, triples
from specs.vocabulary import Kind, Outcome


@defect()
def given_up_too_soon(trace: Trace) -> Changes:
    """A message is given up one delivery too soon."""
    limit = trace.config.max_reconsume_times
    told = [Kind.DELIVER, Kind.DELIVER, Kind.DEAD_LETTER]
    for work in trace.works if limit >= 1 and trace.config.batch == 1 else ():
        steps = work.of(*told)
        if any(row.outcome is Outcome.ROLLBACK for row in steps):
            continue
        for first, last, letter in triples(steps):
            same = first.queue_offset == last.queue_offset == letter.queue_offset
            counted = first.reconsume_times == limit - 1 and last.reconsume_times == limit
            kinds = [first.kind, last.kind, letter.kind]
            if same and counted and kinds == told and letter.outcome is Outcome.OK:
                yield drop(last).about(first, letter)
