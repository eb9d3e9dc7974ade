"""What breaks DLQ-4, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import Change
from spark_checkers.planting import DEAD_LETTERS, Changes, Trace, defect, grouped

MESSAGE = (
    *("message_id", "origin_id", "sharding_key", "body_hash", "tags"),
    *("reconsume_times", "wall_us", "view"),
)


@defect(**DEAD_LETTERS)
def dead_letters_reversed(trace: Trace) -> Changes:
    """Dead letters lie the other way round."""
    # All of them, so that those of one lane are among them.
    found = (row for _, row in places.dead_reads(trace))
    for rows in grouped(found, lambda row: row.queue).values():
        if len(rows) > 3:
            there = [{name: getattr(row, name) for name in MESSAGE} for row in reversed(rows)]
            yield Change({row.seq_begin: told for row, told in zip(rows, there, strict=True)})
