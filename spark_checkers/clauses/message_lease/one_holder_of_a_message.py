"""What breaks PML-1, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import STRANGER, Change, Given, handed_again, put_back
from spark_checkers.planting import LEASED, defect, lookalike


@defect(places.handed_out, **LEASED)
def second_holder(row: Given) -> Change:
    """A message is handed to a second member while the first one has it."""
    return handed_again(row, STRANGER)


@lookalike(places.handed_out_once, **LEASED)
def second_holder_after_release(row: Given) -> Change:
    """A message is handed to a second member once the first one has put it back."""
    return put_back(row) + handed_again(row, STRANGER)
