"""What breaks ORD-8, planted in a history."""

from spark_checkers.changes import drop
from spark_checkers.planting import Changes, Trace, defect, grouped, triples
from specs.clauses.rows import is_copy_topic
from specs.vocabulary import Kind, Outcome


@defect()
def hole_between(trace: Trace) -> Changes:
    """A message between two others is missing."""
    found = (row for row in trace.of(Kind.READ) if not is_copy_topic(row.topic))
    died = {row.broker for row in trace.of(Kind.CRASH)}
    for marker, *reads in grouped(found, lambda row: row.queue).values():
        is_marker = marker.queue_offset is None and marker.outcome is Outcome.OK
        if is_marker and marker.broker not in died:
            for below, gone, above in triples(reads):
                yield drop(gone).about(below, above)
