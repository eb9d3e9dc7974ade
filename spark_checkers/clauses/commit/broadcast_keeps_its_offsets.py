"""What breaks CMT-12, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import Change, Given, alter, copy
from spark_checkers.planting import BROADCASTING, Changes, Trace, defect
from specs.vocabulary import Kind, Outcome


@defect(places.each(Kind.PERSIST), **BROADCASTING)
def commit_in_broadcasting(row: Given) -> Change:
    """A broadcast client commits."""
    return copy(row, row, kind=Kind.COMMIT, outcome=Outcome.SENT).about(row)


@defect(**BROADCASTING)
def own_file_not_read(trace: Trace) -> Changes:
    """A broadcast client begins anew."""
    written: dict[object, Given] = {}
    for row in trace.of(Kind.PERSIST, Kind.ADD):
        whose = (row.process, row.lane)
        if row.kind is Kind.PERSIST:
            written[whose] = row
        elif whose in written and row.value:
            yield alter(row, value=0).about(written[whose])
