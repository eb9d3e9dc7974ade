"""What breaks SND-5, planted in a history."""

from spark_checkers.changes import alter
from spark_checkers.planting import Changes, Trace, defect, pairs
from specs.clauses.rows import is_copy_topic
from specs.vocabulary import Kind


@defect(tagged=True)
def batch_interrupted(trace: Trace) -> Changes:
    """Another message lies within a batch."""
    found = {row.message_id: row for row in trace.of(Kind.READ) if row.queue_offset is not None}
    sends = (row for row in trace.of(Kind.SEND) if row.value is not None)
    parts = (row for row in sends if not is_copy_topic(row.topic))
    for part, after in pairs(parts, lambda row: row.op_id):
        read, other = found.get(part.message_id), found.get(after.message_id)
        if read is not None and other is not None:
            yield alter(other, message_id=f"{other.message_id}-other").about(part, after, read)
