"""What breaks LSE-6, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import STRANGER, Changes, Mutant, Trace
from specs.vocabulary import Kind, Outcome

CLAUSE = "LSE-6"


def unlock_in_vain(trace: Trace) -> Changes:
    for lock in planting.held(trace):
        yield partial(
            lambda a: trace.with_more(
                [
                    planting.lock(trace, a, 1, str(a.client_id), Outcome.OK)._replace(
                        kind=Kind.UNLOCK
                    ),
                    planting.lock(trace, a, 2, STRANGER, Outcome.REFUSED),
                ],
                [a.seq_begin],
            ),
            lock,
        )


DEFECTS = (
    Mutant(
        "unlock-in-vain",
        "LSE-6",
        "the owner gives a lane back, and the next one is refused",
        unlock_in_vain,
    ),
)
