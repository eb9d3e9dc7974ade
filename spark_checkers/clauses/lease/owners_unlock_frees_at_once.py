"""What breaks LSE-6, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import STRANGER, Change, Given, lock_again
from spark_checkers.planting import defect
from specs.vocabulary import Kind, Outcome


@defect(places.held)
def unlock_in_vain(lock: Given) -> Change:
    """The owner gives a lane back, and the next one is refused."""
    unlock = lock_again(lock, lock.client_id, Outcome.OK, Kind.UNLOCK).about(lock)
    return unlock + lock_again(lock, STRANGER, Outcome.REFUSED)
