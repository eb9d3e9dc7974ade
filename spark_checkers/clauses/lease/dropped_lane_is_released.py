"""What breaks LSE-16, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import ANOTHER, MS, STRANGER, Changes, Mutant, Planted, Trace
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome

CLAUSE = "LSE-16"


def lease_kept(trace: Trace) -> Changes:
    config = trace.info.config
    for lock in trace.of(Kind.LOCK):
        late = planting.later(trace, lock, config.schedule_slack_ms * MS)
        asked = 0 if late is None else (late.ended_us or late.started_us) - (lock.ended_us or 0)
        if late is not None and asked < (config.broker_lease_ms // 2) * MS:
            yield partial(_kept, trace, lock, late)


def _kept(trace: Trace, lock: Row, late: Row) -> Planted:
    granted = planting.elsewhere(trace, lock, lock, STRANGER, Outcome.OK)
    drop = planting.elsewhere(trace, lock, lock, STRANGER, Outcome.OK)
    drop = drop._replace(
        kind=Kind.DROP,
        seq_begin=granted.seq_begin + 2,
        seq_end=granted.seq_begin + 2,
        incarnation=f"{STRANGER}#1",
    )
    return trace.with_more(
        [granted, drop, planting.elsewhere(trace, lock, late, ANOTHER, Outcome.REFUSED)]
    )


DEFECTS = (Mutant("lease-kept", "LSE-16", "a dropped lane is not given back", lease_kept),)
