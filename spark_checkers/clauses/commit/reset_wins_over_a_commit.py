"""What breaks CMT-11, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import STRANGER, Change, Given, looked_up
from spark_checkers.planting import defect, lookalike
from specs.vocabulary import Kind


def reset_and_committed(commit: Given, answered: int) -> Change:
    """In a group of its own an operator resets, somebody commits, and a look-up answers one of the two."""
    reset = looked_up(commit, commit, commit.value + 1, kind=Kind.RESET, group=STRANGER)
    again = looked_up(commit, commit, commit.value, kind=Kind.COMMIT, group=STRANGER)
    return reset + again + looked_up(commit, commit, answered, group=STRANGER)


@defect(places.acknowledged)
def reset_overwritten(commit: Given) -> Change:
    """A commit in flight undoes a reset."""
    return reset_and_committed(commit, commit.value)


@lookalike(places.acknowledged)
def reset_in_flight(commit: Given) -> Change:
    """A commit comes after a reset, which wins."""
    return reset_and_committed(commit, commit.value + 1)
