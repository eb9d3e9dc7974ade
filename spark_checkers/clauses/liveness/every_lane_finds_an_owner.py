"""What breaks LIV-2, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import Change, Given, drop, insert
from spark_checkers.planting import RECORDED, Work, defect
from specs.vocabulary import Kind


@defect(places.last_works, **RECORDED)
def nobodys_lane(work: Work, last: list[Given]) -> Change:
    """A lane is dropped for good, with a message left."""
    return drop(*last) + insert(Kind.DROP, work.add, work.rows[-1])
