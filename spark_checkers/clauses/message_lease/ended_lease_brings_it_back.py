"""What breaks PML-5, planted in a history."""

from collections.abc import Iterator

from spark_checkers import places
from spark_checkers.changes import STRANGER, Change, Given, by, drop, insert
from spark_checkers.planting import LEASED, Trace, defect, lookalike
from specs.vocabulary import Kind, Outcome

ASKED_IN_VAIN = {**by(STRANGER), "outcome": Outcome.REFUSED}


def at_the_end(trace: Trace) -> Iterator[tuple[Given, Given, list[Given]]]:
    """(a hand-out, the last row of all, what was asked of its message since)."""
    asked = list(trace.of(Kind.ACK, Kind.RELEASE, Kind.RENEW))
    for row in places.handed_out_once(trace):
        mine = (each for each in asked if each.lane == row.lane)
        yield row, trace.rows[-1], [each for each in mine if each.queue_offset == row.queue_offset]


@defect(at_the_end, **LEASED)
def asked_in_vain(row: Given, last: Given, asked: list[Given]) -> Change:
    """A message that nobody acknowledged is not handed out, long after its lease, though somebody asks."""
    return drop(*asked) + insert(Kind.RECEIVE, row, last, **ASKED_IN_VAIN).about(row)


@lookalike(at_the_end, **LEASED)
def asked_where_nothing_is(row: Given, last: Given, asked: list[Given]) -> Change:
    """Somebody asks in vain, and all is acknowledged."""
    return insert(Kind.RECEIVE, row, last, **ASKED_IN_VAIN).about(row)
