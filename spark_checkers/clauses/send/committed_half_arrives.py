"""What breaks SND-13, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import Change, Given, drop, half_committed
from spark_checkers.planting import RECORDED, defect


@defect(places.missed, **RECORDED)
def committed_half_missing(send: Given, read: Given) -> Change:
    """A half message that was committed does not come."""
    return half_committed(send, send) + drop(read)
