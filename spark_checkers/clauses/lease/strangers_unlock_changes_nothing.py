"""What breaks LSE-8, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import ANOTHER, STRANGER, Change, Given, lock_again
from spark_checkers.planting import defect, lookalike
from specs.vocabulary import Kind, Outcome


def unlocked_by_a_stranger(lock: Given, next_one: Outcome) -> Change:
    unlock = lock_again(lock, STRANGER, Outcome.OK, Kind.UNLOCK).about(lock)
    return unlock + lock_again(lock, ANOTHER, next_one)


@defect(places.held)
def stranger_unlock(lock: Given) -> Change:
    """A stranger's unlock frees the lane."""
    return unlocked_by_a_stranger(lock, Outcome.OK)


@lookalike(places.held)
def stranger_in_vain(lock: Given) -> Change:
    """A stranger unlocks, and the next one is refused."""
    return unlocked_by_a_stranger(lock, Outcome.REFUSED)
