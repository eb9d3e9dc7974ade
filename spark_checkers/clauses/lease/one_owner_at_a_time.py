"""What breaks LSE-1, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import STRANGER, Changes, Mutant, Trace
from specs.vocabulary import Outcome

CLAUSE = "LSE-1"


def second_owner(trace: Trace) -> Changes:
    for lock in planting.held(trace):
        yield partial(
            lambda a: trace.with_more(
                [planting.lock(trace, a, 1, STRANGER, Outcome.OK)], [a.seq_begin]
            ),
            lock,
        )


def unanswered_lock(trace: Trace) -> Changes:
    for lock in planting.held(trace):
        yield partial(
            lambda a: trace.with_more(
                [planting.lock(trace, a, 1, STRANGER, Outcome.UNKNOWN)], [a.seq_begin]
            ),
            lock,
        )


DEFECTS = (Mutant("second-owner", "LSE-1", "a lane is granted to a second client", second_owner),)

LOOKALIKES = (
    Mutant("unanswered-lock", None, "a second client asks and is not answered", unanswered_lock),
)
