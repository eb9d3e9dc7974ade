"""What breaks LSE-8, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import ANOTHER, STRANGER, Changes, Mutant, Planted, Trace
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome

CLAUSE = "LSE-8"


def stranger_unlock(trace: Trace) -> Changes:
    for lock in planting.held(trace):
        yield partial(_freed, trace, lock)


def _freed(trace: Trace, lock: Row) -> Planted:
    unlock = planting.lock(trace, lock, 1, STRANGER, Outcome.OK)._replace(kind=Kind.UNLOCK)
    return trace.with_more(
        [unlock, planting.lock(trace, lock, 2, ANOTHER, Outcome.OK)], [lock.seq_begin]
    )


def stranger_unlocks_in_vain(trace: Trace) -> Changes:
    for lock in planting.held(trace):
        yield partial(
            lambda a: trace.with_more(
                [
                    planting.lock(trace, a, 1, STRANGER, Outcome.OK)._replace(kind=Kind.UNLOCK),
                    planting.lock(trace, a, 2, ANOTHER, Outcome.REFUSED),
                ],
                [a.seq_begin],
            ),
            lock,
        )


DEFECTS = (
    Mutant("stranger-unlock", "LSE-8", "a stranger's unlock frees the lane", stranger_unlock),
)

LOOKALIKES = (
    Mutant(
        "stranger-in-vain",
        None,
        "a stranger unlocks, and the next one is refused",
        stranger_unlocks_in_vain,
    ),
)
