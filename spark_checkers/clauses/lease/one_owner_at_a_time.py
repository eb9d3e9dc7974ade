"""What breaks LSE-1, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import STRANGER, Change, Given, lock_again
from spark_checkers.planting import defect, lookalike
from specs.vocabulary import Outcome


@defect(places.held)
def second_owner(lock: Given) -> Change:
    """A lane is granted to a second client."""
    return lock_again(lock, STRANGER, Outcome.OK).about(lock)


@lookalike(places.held)
def unanswered_lock(lock: Given) -> Change:
    """A second client asks and is not answered."""
    return lock_again(lock, STRANGER, Outcome.UNKNOWN).about(lock)
