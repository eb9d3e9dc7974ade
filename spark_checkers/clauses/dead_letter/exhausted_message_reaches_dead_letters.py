"""What breaks DLQ-1, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import Change, Given, alter, copy, drop
from spark_checkers.planting import DEAD_LETTERS, defect, lookalike
from specs.vocabulary import Outcome

REFUSED = {"outcome": Outcome.REFUSED, "code": 1, "attempt": 1}


@defect(places.dead_reads, **DEAD_LETTERS)
def lost_dead_letter(marker: Given, row: Given) -> Change:
    """A dead letter is missing."""
    return drop(row).about(marker)


@lookalike(places.given_up)
def second_try_arrives(last: Given, letter: Given, _: Given) -> Change:
    """A dead letter is refused at first, and acknowledged then."""
    return alter(letter, attempt=2) + copy(letter, last, **REFUSED)
