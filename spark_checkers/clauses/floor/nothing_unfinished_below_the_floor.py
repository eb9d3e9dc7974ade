"""What breaks FLR-1, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import Change, Given, floor_told
from spark_checkers.planting import LEASED, defect, lookalike


@defect(places.handed_out, **LEASED)
def floor_passes_unfinished(row: Given) -> Change:
    """The store tells a floor beyond a message that somebody works on."""
    return floor_told(row.queue_offset + 1, row, row)


@lookalike(places.handed_out, **LEASED)
def floor_at_unfinished(row: Given) -> Change:
    """The store tells the message that somebody works on as the floor."""
    return floor_told(row.queue_offset, row, row)
