"""What breaks DLQ-10, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace

CLAUSE = "DLQ-10"


def given_up_again(trace: Trace) -> Changes:
    for _last, letter, _after in planting.given_up(trace):
        yield partial(lambda a: trace.with_more([trace.another(a, a, 1)], [a.seq_begin]), letter)


DEFECTS = (
    Mutant(
        "given-up-again",
        "DLQ-10",
        "a message of a batch is given up twice",
        given_up_again,
        config={"batch": 2},
    ),
)
