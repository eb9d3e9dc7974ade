"""What breaks SND-2, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import Change, Given, drop
from spark_checkers.planting import defect


@defect(places.reads)
def invented_message(send: Given, read: Given) -> Change:
    """A message was never sent."""
    return drop(send).about(read)
