"""What breaks LIV-2, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace
from specs.vocabulary import Kind

CLAUSE = "LIV-2"


def nobodys_lane(trace: Trace) -> Changes:
    for mine, gone in planting.last_works(trace):
        drop = trace.another(mine[0], mine[-1], 1, value=None)._replace(kind=Kind.DROP)
        rows = Trace(trace.without(gone, ()).rows, trace.info)
        yield partial(lambda r, d: r.with_more([d]), rows, drop)


DEFECTS = (
    Mutant(
        "nobodys-lane",
        "LIV-2",
        "a lane is dropped for good, with a message left",
        nobodys_lane,
        generated=False,
    ),
)
