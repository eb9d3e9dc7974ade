"""What breaks SND-1, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import UNANSWERED_SEND, Change, Given, alter, copy, drop, insert
from spark_checkers.planting import Changes, Trace, defect, lookalike
from specs.vocabulary import Kind, Level


def removed(send: Given, read: Given, kept_from: int) -> Change:
    """A message is missing, and the broker says that it removed what lies below that offset."""
    nobody = {"client_id": None, "group": None, "level": Level.STORE, "process": send.broker}
    trim = insert(Kind.TRIM, send, send, **nobody, value=kept_from)
    return (drop(read) + trim).about(send)


@defect(places.reads)
def lost_message(send: Given, read: Given) -> Change:
    """An acknowledged message is missing."""
    return drop(read).about(send)


@defect(places.reads)
def removed_above_the_minimum(send: Given, read: Given) -> Change:
    """More went than was announced."""
    return removed(send, read, send.queue_offset)


@defect(places.reads)
def replaced_message(send: Given, read: Given) -> Change:
    """Another message lies in an acknowledged one's place."""
    return alter(read, message_id=f"{read.message_id}-other").about(send)


@lookalike()
def removed_on_purpose(trace: Trace) -> Changes:
    """What is missing was announced to go."""
    # The broker says that it removed this one too; only that of a queue's first message leaves no hole.
    first: dict[object, int] = {}
    for send, read in places.reads(trace):
        if send.queue_offset == first.setdefault(send.queue, send.queue_offset):
            yield removed(send, read, send.queue_offset + 1)


@lookalike(places.reads)
def unacknowledged_lost(send: Given, read: Given) -> Change:
    """A send without an answer is never read."""
    return copy(send, send, **UNANSWERED_SEND, message_id=f"{send.message_id}-unknown").about(send)


@lookalike()
def stored_weakly_lost(trace: Trace) -> Changes:
    """A message that was not flushed in time is lost."""
    # Only the last message of a queue: a hole between others would be no loss by a flush that came too late.
    markers = {row.queue: row for row in trace.of(Kind.READ) if row.queue_offset is None}
    for send, read in places.reads(trace):
        marker = markers[read.queue]
        if marker.value == read.queue_offset + 1:
            yield alter(send, code=10) + alter(marker, value=read.queue_offset) + drop(read)
