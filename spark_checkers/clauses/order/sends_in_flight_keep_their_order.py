"""What breaks ORD-15, planted in a history."""

from spark_checkers.changes import Change, Given, alter
from spark_checkers.planting import Pairs, Trace, defect, lookalike, pairs
from specs.clauses.rows import is_copy_topic

PIPELINED = {"in_flight": 5}


def in_turn(trace: Trace) -> Pairs:
    """Sends of one producer to one queue that follow each other."""
    sends = (
        row
        for row in trace.sent.values()
        if not row.delay_level and not is_copy_topic(row.topic) and row.value is None
        if row.message_id is not None and row.seq_end is not None and (row.attempt or 1) == 1
    )
    for before, row in pairs(sends, lambda row: (row.client_id, row.queue)):
        if before.queue_offset < row.queue_offset:
            yield before, row


def answered_after(before: Given, row: Given, **stored: int) -> Change:
    """The first one is answered only after the second one."""
    return alter(before, seq_end=row.seq_end + 1, ended_us=row.ended_us, **stored).about(row)


@defect(in_turn, config=PIPELINED)
def overtaken_in_flight(before: Given, row: Given) -> Change:
    """Of two sends that are under way together the later one is stored first."""
    behind = answered_after(before, row, queue_offset=row.queue_offset)
    return behind + alter(row, queue_offset=before.queue_offset)


@lookalike(in_turn, config=PIPELINED)
def answered_late(before: Given, row: Given) -> Change:
    """Of two sends that are under way together the later one is answered first."""
    return answered_after(before, row)
