"""What breaks ASG-2, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import Change, Given, alter
from spark_checkers.planting import RECORDED, defect


@defect(places.shared_alike, where=lambda mine, other: mine.detail, **RECORDED)
def taken_by_nobody(mine: Given, other: Given) -> Change:
    """A member leaves a queue of its share out."""
    return alter(mine, detail=mine.detail.partition(" ")[2]).about(other)
