"""What breaks ORD-12, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace

CLAUSE = "ORD-12"


def swap_key(trace: Trace) -> Changes:
    for first, second in planting.neighbours(trace):
        same = first.sharding_key is not None and first.sharding_key == second.sharding_key
        if (
            same
            and first.key_seq is not None
            and second.key_seq is not None
            and first.key_seq < second.key_seq
        ):
            yield partial(planting.swapped, trace, first, second)


DEFECTS = (
    Mutant(
        "swap-key",
        "ORD-12",
        "two neighbours of one key are delivered the wrong way round",
        swap_key,
    ),
)
