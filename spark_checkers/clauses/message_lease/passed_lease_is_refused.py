"""What breaks PML-3, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import LEASED, Changes, Mutant, Trace
from specs.vocabulary import Outcome

CLAUSE = "PML-3"


def late_one_taken(trace: Trace) -> Changes:
    for before, row in planting.passed_on(trace):
        yield partial(lambda a, b: planting.late_request(trace, a, b, Outcome.OK), before, row)


def late_one_refused(trace: Trace) -> Changes:
    for before, row in planting.passed_on(trace):
        yield partial(lambda a, b: planting.late_request(trace, a, b, Outcome.REFUSED), before, row)


DEFECTS = (
    Mutant(
        "late-acknowledgement-taken",
        "PML-3",
        "an acknowledgement is accepted under a lease that has passed on",
        late_one_taken,
        generated=False,
        consumed=LEASED,
    ),
)

LOOKALIKES = (
    Mutant(
        "late-acknowledgement-refused",
        None,
        "an acknowledgement under a lease that has passed on is refused",
        late_one_refused,
        generated=False,
        consumed=LEASED,
    ),
)
