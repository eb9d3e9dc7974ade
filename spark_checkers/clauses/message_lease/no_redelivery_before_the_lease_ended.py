"""What breaks PML-2, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import LEASED, STRANGER, Changes, Mutant, Trace

CLAUSE = "PML-2"


def handed_out_twice(trace: Trace) -> Changes:
    for row in planting.handed_out(trace):
        yield partial(lambda a: planting.handed_again(trace, a, a.client_id or STRANGER), row)


def put_back_before(trace: Trace) -> Changes:
    for row in planting.handed_out_once(trace):
        yield partial(
            lambda a: planting.handed_again(trace, a, a.client_id or STRANGER, released=True), row
        )


DEFECTS = (
    Mutant(
        "handed-out-twice",
        "PML-2",
        "a message is handed once more to the member that has it",
        handed_out_twice,
        generated=False,
        consumed=LEASED,
    ),
)

LOOKALIKES = (
    Mutant(
        "handed-out-after-release",
        None,
        "a message is handed once more to the member that has put it back",
        put_back_before,
        generated=False,
        consumed=LEASED,
    ),
)
