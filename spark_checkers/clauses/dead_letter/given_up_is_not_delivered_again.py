"""What breaks DLQ-3, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import Change, Given, copy
from spark_checkers.planting import defect
from specs.vocabulary import Outcome


@defect(places.one_by_one(places.given_up))
def given_up_comes_back(last: Given, letter: Given, _after: Given) -> Change:
    """A given-up message is delivered again."""
    done = {"outcome": Outcome.SUCCESS, "suspend_ms": None}
    times = (last.reconsume_times or 0) + 1
    return copy(last, letter, **done, reconsume_times=times).about(letter)
