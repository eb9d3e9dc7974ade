"""What breaks ORD-12, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import MESSAGE, Change, Given, swap
from spark_checkers.planting import defect


def of_one_key(first: Given, second: Given) -> bool:
    numbers = (first.key_seq, second.key_seq)
    same = first.sharding_key is not None and first.sharding_key == second.sharding_key
    return same and None not in numbers and first.key_seq < second.key_seq


@defect(places.neighbours, where=of_one_key)
def swap_key(first: Given, second: Given) -> Change:
    """Two neighbours of one key are delivered the wrong way round."""
    return swap(first, second, *MESSAGE)
