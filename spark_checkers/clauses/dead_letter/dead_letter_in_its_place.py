"""What breaks DLQ-8, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import copy
from spark_checkers.planting import Changes, Trace, defect
from specs.clauses.rows import ended_before, is_copy_topic
from specs.vocabulary import Kind


@defect()
def copy_in_its_topic(trace: Trace) -> Changes:
    """A copy of a given-up message lies in its topic."""
    found = (row for row in trace.of(Kind.READ) if row.queue_offset is not None)
    last = {row.queue: row for row in found if not is_copy_topic(row.topic)}
    for _, letter, _ in places.given_up(trace):
        read = last.get(letter.queue)
        if read is not None and ended_before(letter, read):
            names = {"message_id": f"{letter.message_id}-copy", "origin_id": letter.message_id}
            place = {"queue_offset": read.queue_offset + 1, "key_seq": None}
            yield copy(read, read, **names, **place, body_hash=None).about(read)
