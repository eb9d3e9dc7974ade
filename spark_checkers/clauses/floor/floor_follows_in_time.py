"""What breaks FLR-2, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import LEASED, Changes, Mutant, Trace

CLAUSE = "FLR-2"


def floor_stays(trace: Trace) -> Changes:
    for ack, later in planting.acknowledged_long_before(trace):
        yield partial(
            lambda a, b: planting.reading_after(trace, b, a.queue_offset or 0, like=a), ack, later
        )


def floor_follows(trace: Trace) -> Changes:
    for ack, _ in planting.acknowledged_long_before(trace):
        yield partial(lambda a: planting.reading_after(trace, a, a.queue_offset or 0), ack)


DEFECTS = (
    Mutant(
        "floor-stays",
        "FLR-2",
        "the store tells a floor that was passed long before",
        floor_stays,
        generated=False,
        consumed=LEASED,
    ),
)

LOOKALIKES = (
    Mutant(
        "floor-follows-at-once",
        None,
        "the store tells a floor that has just been passed",
        floor_follows,
        generated=False,
        consumed=LEASED,
    ),
)
