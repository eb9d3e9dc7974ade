"""What breaks SND-3, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import REFUSED_SEND, Change, Given, alter, copy, just_before
from spark_checkers.planting import defect, lookalike


@defect(places.reads, where=lambda send, read: send.attempt in (None, 1))
def seen_though_refused(send: Given, read: Given) -> Change:
    """A message that was refused is read."""
    return alter(send, **REFUSED_SEND).about(read)


@lookalike(places.reads, where=lambda send, read: send.attempt == 1)
def refused_then_stored(send: Given, read: Given) -> Change:
    """A refused send (without a key) is stored at its second try."""
    return copy(send, just_before(send), **REFUSED_SEND, sharding_key=None) + alter(send, attempt=2)
