"""What breaks ORD-6, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import STRANGER, Change, Given, by, moved
from spark_checkers.planting import RECORDED, defect


@defect(places.of_one_key, **RECORDED)
def producers_disagree(before: Given, row: Given) -> Change:
    """Another producer has another queue."""
    return moved(row, **by(STRANGER)).about(before)
