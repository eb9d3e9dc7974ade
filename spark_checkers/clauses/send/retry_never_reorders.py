"""What breaks SND-9, planted in a history."""

from spark_checkers.changes import BEHIND_ALL, REFUSED_SEND, Change, Given, alter, copy
from spark_checkers.planting import Pairs, Trace, defect, pairs
from specs.vocabulary import Kind, Outcome


def in_turn(trace: Trace) -> Pairs:
    """Two sends of one producer and key to the same queue, acknowledged at their first try."""
    sends = (
        row
        for row in trace.of(Kind.SEND)
        if row.attempt == 1 and row.outcome is Outcome.OK and row.key_seq is not None
        if not row.delay_level and row.sharding_key is not None
    )
    for before, send in pairs(sends, lambda row: (row.client_id, row.topic, row.sharding_key)):
        if before.queue == send.queue:
            yield before, send


@defect(in_turn)
def stored_behind(before: Given, send: Given) -> Change:
    """A refused message is stored behind its successor."""
    again = copy(before, send, attempt=2, queue_offset=BEHIND_ALL + send.queue_offset)
    return alter(before, **REFUSED_SEND) + again.about(send)
