"""What breaks RTY-8, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import Change, Given
from spark_checkers.planting import defect


@defect(places.given_up, config={"max_reconsume_times": -1})
def no_limit(last: Given, letter: Given, after: Given) -> Change:
    """The run had no limit."""
    return Change().about(letter, after)
