"""What breaks PML-2, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import Change, Given, handed_again, put_back
from spark_checkers.planting import LEASED, defect, lookalike


@defect(places.handed_out, **LEASED)
def handed_out_twice(row: Given) -> Change:
    """A message is handed once more to the member that has it."""
    return handed_again(row, row.client_id)


@defect(places.handed_out_once, **LEASED)
def handed_out_within_the_pause(row: Given) -> Change:
    """A message is handed once more at once, though it was put back for a minute."""
    return put_back(row, 60_000) + handed_again(row, row.client_id)


@lookalike(places.handed_out_once, **LEASED)
def handed_out_after_release(row: Given) -> Change:
    """A message is handed once more to the member that has put it back."""
    return put_back(row) + handed_again(row, row.client_id)
