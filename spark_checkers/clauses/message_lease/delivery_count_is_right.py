"""What breaks PML-4, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import STRANGER, Change, Given, alter, handed_again, put_back
from spark_checkers.planting import LEASED, defect, lookalike


@defect(places.passed_on, **LEASED)
def count_told_again(before: Given, row: Given) -> Change:
    """A hand-out tells the count of the one before."""
    return alter(row, reconsume_times=before.reconsume_times or 0)


@defect(places.handed_out, **LEASED)
def count_too_high(row: Given) -> Change:
    """A first hand-out tells of many before."""
    return alter(row, reconsume_times=1000)


@lookalike(places.handed_out_once, **LEASED)
def count_told_once_more(row: Given) -> Change:
    """A message is handed out once more, tells so, and was put back before."""
    return put_back(row) + handed_again(row, STRANGER)
