"""What breaks LSE-5, planted in a history."""

from typing import Any

from spark_checkers.changes import ANOTHER, MS, STRANGER, Change, Given, elsewhere
from spark_checkers.planting import RECORDED, Changes, Trace, defect
from specs.vocabulary import Kind, Outcome

NOWHERE = {"broker": None, "queue_id": None}


@defect(**RECORDED)
def orphan_forgotten(trace: Trace) -> Changes:
    """A dead owner's lane is not taken over."""
    # After everything else, a stranger is granted a lane and dies; the one to whom it is assigned never adds it.
    config = trace.config
    bound_ms = config.broker_lease_ms + config.rebalance_ms
    bound_ms += config.delay_bound_ms + config.schedule_slack_ms
    last = max(trace.rows, key=lambda row: max(row.seq_begin, row.seq_end or 0))
    end_us = max(max(row.started_us, row.ended_us or 0) for row in trace.rows)

    def then(lock: Given, after_us: int, client: str, **columns: Any) -> Change:
        times = {"started_us": end_us + after_us, "ended_us": end_us + after_us}
        return elsewhere(lock, last, client, Outcome.OK, **times, **columns)

    for lock in trace.of(Kind.LOCK):
        if lock.outcome is Outcome.OK and lock.queue_id is not None:
            nobodys, share = {"group": None, "topic": None}, f"{lock.broker}/{lock.queue_id}"
            yield (
                then(lock, 0, STRANGER)
                + then(lock, 1, STRANGER, kind=Kind.CRASH, **nobodys, **NOWHERE)
                + then(lock, 2, ANOTHER, kind=Kind.ASSIGN, detail=share, **NOWHERE)
                + then(lock, bound_ms * MS + 3, ANOTHER, queue_id=lock.queue_id + 1)
            )
