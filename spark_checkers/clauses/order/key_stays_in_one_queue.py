"""What breaks ORD-1, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import Change, Given, copy, moved
from spark_checkers.planting import RECORDED, defect, lookalike


@defect(places.of_one_key, **RECORDED)
def key_strays(before: Given, row: Given) -> Change:
    """A later message of a key lies in another queue."""
    return moved(row).about(before)


@lookalike(places.reads, where=lambda send, read: send.view is not None, **RECORDED)
def queues_changed(send: Given, _read: Given) -> Change:
    """A key moves with the list of queues."""
    # The list of queues is another one for a moment, and the key has another queue in it.
    there = {"view": f"{send.view} z/9", "broker": "z", "queue_id": 9, "queue_offset": 0}
    return copy(send, send, **there, message_id=f"{send.message_id}-moved").about(send)
