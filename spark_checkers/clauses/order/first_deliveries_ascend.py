"""What breaks ORD-2, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import MESSAGE, Change, Given, insert, just_before, swap
from spark_checkers.planting import Pairs, Trace, defect, lookalike
from specs.clauses.rows import ended_before
from specs.vocabulary import Kind


def of_two_keys(first: Given, second: Given) -> bool:
    return first.sharding_key is None or bool(first.sharding_key != second.sharding_key)


def before_a_pull(trace: Trace) -> Pairs:
    """A reset that no pull takes has to be answered at the next look-up, whatever was committed."""
    last = {(row.lane, row.incarnation): row for row in trace.of(Kind.PULL)}
    for first, second in places.neighbours(trace):
        pull = last.get((second.lane, second.incarnation))
        if pull and of_two_keys(first, second) and ended_before(second, pull):
            yield first, second


@defect(places.neighbours, where=of_two_keys)
def swap_deliveries(first: Given, second: Given) -> Change:
    """Two neighbours are delivered the wrong way round."""
    return swap(first, second, *MESSAGE)


@lookalike(before_a_pull)
def reset_between(first: Given, second: Given) -> Change:
    """An operator reset the offset before each of the two."""
    nobody = {"client_id": None, "incarnation": None}
    ahead = insert(Kind.RESET, first, just_before(first), **nobody, value=second.queue_offset)
    back = insert(Kind.RESET, first, first, **nobody, value=first.queue_offset)
    return swap(first, second, *MESSAGE) + ahead + back
