"""What breaks SND-6, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import Change, Given, as_half, begin, half_committed
from spark_checkers.planting import defect, lookalike


@defect(places.reads)
def seen_half_message(send: Given, read: Given) -> Change:
    """A half message is read though nobody committed it."""
    return as_half(send)


@lookalike(places.reads)
def committed_half_message(send: Given, read: Given) -> Change:
    """A half message was committed."""
    return half_committed(send, begin(send))
