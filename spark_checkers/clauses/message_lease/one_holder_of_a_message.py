"""What breaks PML-1, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import LEASED, STRANGER, Changes, Mutant, Trace

CLAUSE = "PML-1"


def second_holder(trace: Trace) -> Changes:
    for row in planting.handed_out(trace):
        yield partial(lambda a: planting.handed_again(trace, a, STRANGER), row)


def put_back_before(trace: Trace) -> Changes:
    for row in planting.handed_out_once(trace):
        yield partial(lambda a: planting.handed_again(trace, a, STRANGER, released=True), row)


DEFECTS = (
    Mutant(
        "second-holder",
        "PML-1",
        "a message is handed to a second member while the first one has it",
        second_holder,
        generated=False,
        consumed=LEASED,
    ),
)

LOOKALIKES = (
    Mutant(
        "second-holder-after-release",
        None,
        "a message is handed to a second member once the first one has put it back",
        put_back_before,
        generated=False,
        consumed=LEASED,
    ),
)
