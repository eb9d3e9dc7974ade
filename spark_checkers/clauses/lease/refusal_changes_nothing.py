"""What breaks LSE-7, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import ANOTHER, MS, STRANGER, Changes, Mutant, Trace
from specs.vocabulary import Kind, Outcome

CLAUSE = "LSE-7"


def prolonged_by_a_refusal(trace: Trace) -> Changes:
    limit = (trace.info.config.broker_lease_ms + 1) * MS
    for lock in trace.of(Kind.LOCK):
        early, late = planting.later(trace, lock, limit // 2), planting.later(trace, lock, limit)
        if early is not None and late is not None and early.seq_begin < late.seq_begin:
            yield partial(
                lambda a, b, c: trace.with_more(
                    [
                        planting.elsewhere(trace, a, a, STRANGER, Outcome.OK),
                        planting.elsewhere(trace, a, b, ANOTHER, Outcome.REFUSED),
                        planting.elsewhere(trace, a, c, ANOTHER, Outcome.REFUSED),
                    ]
                ),
                lock,
                early,
                late,
            )


DEFECTS = (
    Mutant(
        "prolonged-lease",
        "LSE-7",
        "a refusal makes the owner's lease longer",
        prolonged_by_a_refusal,
    ),
)
