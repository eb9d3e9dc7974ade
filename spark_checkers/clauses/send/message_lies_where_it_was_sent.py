"""What breaks SND-12, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import Change, Given, alter
from spark_checkers.planting import RECORDED, defect


@defect(places.reads, **RECORDED)
def read_in_another_queue(send: Given, read: Given) -> Change:
    """A message lies where nobody sent it."""
    return alter(send, queue_id=send.queue_id + 90, attempt=1).about(read)
