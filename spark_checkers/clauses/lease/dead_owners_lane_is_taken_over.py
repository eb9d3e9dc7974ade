"""What breaks LSE-5, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import ANOTHER, MS, STRANGER, Changes, Mutant, Planted, Trace
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome

CLAUSE = "LSE-5"


def orphan_forgotten(trace: Trace) -> Changes:
    for lock in trace.of(Kind.LOCK):
        if lock.outcome is Outcome.OK and lock.queue_id is not None:
            yield partial(_orphaned, trace, lock)


def _orphaned(trace: Trace, lock: Row) -> Planted:
    """After everything else, a stranger is granted a lane and dies; the one to whom it is assigned never adds it."""
    config = trace.info.config
    times = (
        config.broker_lease_ms,
        config.rebalance_ms,
        config.delay_bound_ms,
        config.schedule_slack_ms,
    )
    last = max(trace.rows, key=lambda row: max(row.seq_begin, row.seq_end or 0))
    granted = planting.elsewhere(trace, lock, last, STRANGER, Outcome.OK)
    end = max(granted.started_us, *(max(row.started_us, row.ended_us or 0) for row in trace.rows))
    bare = granted._replace(queue_id=None, broker=None)
    share = f"{lock.broker}/{lock.queue_id}"
    made = (
        (0, granted),
        (1, bare._replace(kind=Kind.CRASH, group=None, topic=None)),
        (2, bare._replace(kind=Kind.ASSIGN, client_id=ANOTHER, detail=share)),
        (
            sum(times) * MS + 3,
            granted._replace(client_id=ANOTHER, queue_id=(lock.queue_id or 0) + 1),
        ),
    )
    return trace.with_more(
        [
            row._replace(
                seq_begin=granted.seq_begin + 2 * step,
                seq_end=granted.seq_begin + 2 * step,
                op_id=granted.op_id + step,
                started_us=end + late_us,
                ended_us=end + late_us,
            )
            for step, (late_us, row) in enumerate(made)
        ]
    )


DEFECTS = (
    Mutant(
        "orphan-forgotten",
        "LSE-5",
        "a dead owner's lane is not taken over",
        orphan_forgotten,
        generated=False,
    ),
)
