"""What breaks DLQ-2, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import BEHIND_ALL, Change, Given, copy
from spark_checkers.planting import DEAD_LETTERS, defect


@defect(places.one_by_one(places.dead_reads), **DEAD_LETTERS)
def dead_letter_twice(_marker: Given, row: Given) -> Change:
    """A dead letter is there twice."""
    offset = BEHIND_ALL + row.queue_offset
    return copy(row, row, queue_offset=offset, message_id=f"{row.message_id}-again").about(row)
