"""What breaks FLR-1, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import LEASED, Changes, Mutant, Trace

CLAUSE = "FLR-1"


def floor_passes(trace: Trace) -> Changes:
    for row in planting.handed_out(trace):
        yield partial(lambda a: planting.reading_after(trace, a, (a.queue_offset or 0) + 1), row)


def floor_reaches(trace: Trace) -> Changes:
    for row in planting.handed_out(trace):
        yield partial(lambda a: planting.reading_after(trace, a, a.queue_offset or 0), row)


DEFECTS = (
    Mutant(
        "floor-passes-unfinished",
        "FLR-1",
        "the store tells a floor beyond a message that somebody works on",
        floor_passes,
        generated=False,
        consumed=LEASED,
    ),
)

LOOKALIKES = (
    Mutant(
        "floor-at-unfinished",
        None,
        "the store tells the message that somebody works on as the floor",
        floor_reaches,
        generated=False,
        consumed=LEASED,
    ),
)
