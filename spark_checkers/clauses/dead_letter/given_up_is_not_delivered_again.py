"""What breaks DLQ-3, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace
from specs.vocabulary import Outcome

CLAUSE = "DLQ-3"


def given_up_comes_back(trace: Trace) -> Changes:
    if trace.info.config.batch != 1:
        return
    for last, letter, _after in planting.given_up(trace):
        columns = {
            "outcome": Outcome.SUCCESS,
            "suspend_ms": None,
            "reconsume_times": (last.reconsume_times or 0) + 1,
        }
        yield partial(
            lambda r, a, c: trace.with_more([trace.another(r, a, 1, **c)], [a.seq_begin]),
            last,
            letter,
            columns,
        )


DEFECTS = (
    Mutant(
        "given-up-comes-back", "DLQ-3", "a given-up message is delivered again", given_up_comes_back
    ),
)
