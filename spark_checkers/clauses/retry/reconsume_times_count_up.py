"""What breaks RTY-3, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import Change, Given, alter
from spark_checkers.planting import defect
from specs.clauses.rows import acknowledges


def counted(before: Given, row: Given) -> bool:
    times = before.reconsume_times
    return acknowledges(row) and times is not None and row.reconsume_times == times + 1


@defect(places.one_by_one(places.redelivered), where=counted)
def counter_reset(before: Given, row: Given) -> Change:
    """The retry counter starts anew."""
    return alter(row, reconsume_times=0).about(before)
