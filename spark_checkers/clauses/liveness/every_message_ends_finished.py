"""What breaks LIV-1, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace

CLAUSE = "LIV-1"


def never_delivered(trace: Trace) -> Changes:
    for mine, gone in planting.last_works(trace):
        yield partial(lambda g, a: trace.without(g, [a.seq_begin]), gone, mine[0])


DEFECTS = (
    Mutant(
        "never-delivered",
        "LIV-1",
        "the last message is never delivered",
        never_delivered,
        generated=False,
    ),
)
