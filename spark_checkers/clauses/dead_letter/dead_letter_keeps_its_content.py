"""What breaks DLQ-5, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import Change, Given, alter
from spark_checkers.planting import DEAD_LETTERS, defect


@defect(places.dead_reads, where=lambda marker, row: row.body_hash is not None, **DEAD_LETTERS)
def changed_dead_letter(marker: Given, row: Given) -> Change:
    """A dead letter has another body."""
    return alter(row, body_hash=row.body_hash + 1)


@defect(places.dead_reads, where=lambda marker, row: row.body_hash is not None, **DEAD_LETTERS)
def another_origin(marker: Given, row: Given) -> Change:
    """A dead letter names another topic."""
    return alter(row, view=f"{row.run}-topic")
