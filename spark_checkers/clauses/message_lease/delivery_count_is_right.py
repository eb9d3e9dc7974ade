"""What breaks PML-4, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import LEASED, STRANGER, Changes, Mutant, Trace
from specs.history.row import Row

CLAUSE = "PML-4"


def told_again(trace: Trace) -> Changes:
    for before, row in planting.passed_on(trace):
        yield partial(lambda a, b: _tells(trace, b, a.reconsume_times or 0), before, row)


def told_too_much(trace: Trace) -> Changes:
    for row in planting.handed_out(trace):
        yield partial(lambda a: _tells(trace, a, 1000), row)


def put_back_before(trace: Trace) -> Changes:
    for row in planting.handed_out_once(trace):
        yield partial(lambda a: planting.handed_again(trace, a, STRANGER, released=True), row)


def _tells(trace: Trace, row: Row, times: int) -> planting.Planted:
    return trace.changed({row.seq_begin: {"reconsume_times": times}})


DEFECTS = (
    Mutant(
        "count-told-again",
        "PML-4",
        "a hand-out tells the count of the one before",
        told_again,
        generated=False,
        consumed=LEASED,
    ),
    Mutant(
        "count-too-high",
        "PML-4",
        "a first hand-out tells of many before",
        told_too_much,
        generated=False,
        consumed=LEASED,
    ),
)

LOOKALIKES = (
    Mutant(
        "count-told-once-more",
        None,
        "a message is handed out once more, tells so, and was put back before",
        put_back_before,
        generated=False,
        consumed=LEASED,
    ),
)
