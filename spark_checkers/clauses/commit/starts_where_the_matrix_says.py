"""What breaks CMT-8, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import STRANGERS_WORK, Change, Given, looked_up
from spark_checkers.planting import defect, lookalike
from specs.vocabulary import Kind


def added_at(commit: Given, start: int) -> Change:
    """A stranger hears an offset and adds the lane; it takes nothing, and commits nothing."""
    asked = looked_up(commit, commit, commit.value)
    added = looked_up(commit, commit, start, kind=Kind.ADD, incarnation=STRANGERS_WORK)
    return (asked + added).about(commit)


@defect(places.acknowledged)
def wrong_start(commit: Given) -> Change:
    """A lane is not started where it was stored."""
    return added_at(commit, commit.value + 1)


@lookalike(places.acknowledged)
def right_start(commit: Given) -> Change:
    """A stranger adds a lane where it was stored."""
    return added_at(commit, commit.value)
