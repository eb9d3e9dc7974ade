"""What breaks SND-4, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import UNANSWERED_SEND, Change, Given, alter, copy
from spark_checkers.planting import defect


@defect(places.reads, where=lambda send, read: send.sharding_key is not None and send.attempt == 1)
def keyed_send_again(send: Given, read: Given) -> Change:
    """An unanswered send with a key is tried again."""
    return alter(send, **UNANSWERED_SEND) + copy(send, send, attempt=2)
