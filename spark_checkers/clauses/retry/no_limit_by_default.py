"""What breaks RTY-8, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Planted, Trace

CLAUSE = "RTY-8"


def given_up_without_limit(trace: Trace) -> Changes:
    for _last, letter, after in planting.given_up(trace):
        about = (letter.seq_begin, after.seq_begin)
        yield partial(lambda a: Planted(trace.rows, a), about)


DEFECTS = (
    Mutant(
        "no-limit",
        "RTY-8",
        "the run had no limit",
        given_up_without_limit,
        config={"max_reconsume_times": -1},
    ),
)
