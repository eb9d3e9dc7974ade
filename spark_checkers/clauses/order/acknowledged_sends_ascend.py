"""What breaks ORD-9, planted in a history."""

from spark_checkers.changes import Change, Given, swap
from spark_checkers.planting import Pairs, Trace, defect, pairs
from specs.clauses.rows import ended_before, is_copy_topic


def in_turn(trace: Trace) -> Pairs:
    """Sends to one queue that follow each other."""
    at_once = (row for row in trace.sent.values() if not row.delay_level)
    return pairs((r for r in at_once if not is_copy_topic(r.topic)), lambda row: row.queue)


@defect(in_turn, where=ended_before)
def sends_swapped(before: Given, row: Given) -> Change:
    """A later send is given the smaller offset."""
    return swap(before, row, "queue_offset")
