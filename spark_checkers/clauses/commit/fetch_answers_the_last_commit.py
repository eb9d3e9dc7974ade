"""What breaks CMT-9, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import BEHIND_ALL, Change, Given, looked_up
from spark_checkers.planting import defect


@defect(places.acknowledged)
def commit_forgotten(commit: Given) -> Change:
    """A look-up answers what nobody committed."""
    return looked_up(commit, commit, BEHIND_ALL).about(commit)
