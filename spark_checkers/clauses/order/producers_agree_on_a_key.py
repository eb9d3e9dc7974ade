"""What breaks ORD-6, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import STRANGER, Changes, Mutant, Trace

CLAUSE = "ORD-6"


def producers_disagree(trace: Trace) -> Changes:
    for before, row in planting.keyed(trace):
        yield partial(
            lambda b, r: planting.moved(trace, b, r, client_id=STRANGER, process=STRANGER),
            before,
            row,
        )


DEFECTS = (
    Mutant(
        "producers-disagree",
        "ORD-6",
        "another producer has another queue",
        producers_disagree,
        generated=False,
    ),
)
