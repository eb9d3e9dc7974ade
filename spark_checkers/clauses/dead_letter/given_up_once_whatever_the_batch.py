"""What breaks DLQ-10, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import Change, Given, copy
from spark_checkers.planting import defect


@defect(places.given_up, config={"batch": 2})
def given_up_again(last: Given, letter: Given, after: Given) -> Change:
    """A message of a batch is given up twice."""
    return copy(letter, letter).about(letter)
