"""What breaks LIV-1, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import Change, Given, drop
from spark_checkers.planting import RECORDED, Work, defect


@defect(places.last_works, **RECORDED)
def never_delivered(work: Work, last: list[Given]) -> Change:
    """The last message is never delivered."""
    return drop(*last).about(work.add)
