"""What breaks SND-10, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import Change, Given, alter
from spark_checkers.planting import defect, lookalike


def both_known(send: Given, read: Given) -> bool:
    return None not in (send.body_hash, read.body_hash)


@defect(places.reads, where=both_known)
def changed_body(send: Given, read: Given) -> Change:
    """A message is read with another body."""
    return alter(read, body_hash=read.body_hash ^ 1).about(send)


@defect(places.reads, where=both_known)
def lost_property(send: Given, read: Given) -> Change:
    """A message is read without a property."""
    return alter(send, props_hash=4711) + alter(read, props_hash=0)


@lookalike(places.reads, where=lambda send, read: send.body_hash is not None)
def content_unknown(send: Given, read: Given) -> Change:
    """A reader does not know the body."""
    return alter(read, body_hash=None, tags="other")
