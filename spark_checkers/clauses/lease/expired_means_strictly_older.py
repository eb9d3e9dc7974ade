"""What breaks LSE-14, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import ANOTHER, MS, STRANGER, Changes, Mutant, Trace
from specs.vocabulary import Kind, Outcome

CLAUSE = "LSE-14"


def outlived_lease(trace: Trace) -> Changes:
    limit = (trace.info.config.broker_lease_ms + 1) * MS
    for lock in trace.of(Kind.LOCK):
        late = planting.later(trace, lock, limit)
        if late is not None:
            yield partial(
                lambda a, b: trace.with_more(
                    [
                        planting.elsewhere(trace, a, a, STRANGER, Outcome.OK),
                        planting.elsewhere(trace, a, b, ANOTHER, Outcome.REFUSED),
                    ]
                ),
                lock,
                late,
            )


DEFECTS = (
    Mutant("outlived-lease", "LSE-14", "a lease lives on when its time is over", outlived_lease),
)
