"""What breaks KEY-1, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import LEASED, STRANGER, Changes, Mutant, Trace

CLAUSE = "KEY-1"


def another_of_the_key(trace: Trace) -> Changes:
    for row in planting.handed_out(trace):
        if row.sharding_key is not None:
            yield partial(lambda a: planting.handed_next(trace, a, STRANGER), row)


def another_key(trace: Trace) -> Changes:
    for row in planting.handed_out(trace):
        yield partial(
            lambda a: planting.handed_next(trace, a, STRANGER, sharding_key="planted"), row
        )


DEFECTS = (
    Mutant(
        "second-holder-of-a-key",
        "KEY-1",
        "a second member is handed the next message of a key while the first one has the last",
        another_of_the_key,
        generated=False,
        consumed=LEASED,
    ),
)

LOOKALIKES = (
    Mutant(
        "holder-of-another-key",
        None,
        "a second member is handed a message of another key while the first one has its own",
        another_key,
        generated=False,
        consumed=LEASED,
    ),
)
