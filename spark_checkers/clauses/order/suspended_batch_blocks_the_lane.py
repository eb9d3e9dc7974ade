"""What breaks ORD-3, planted in a history."""

from __future__ import annotations

from functools import partial
from typing import Any

from spark_checkers.planting import Changes, Mutant, Planted, Trace
from specs.history.row import Row
from specs.vocabulary import LISTENER_SUSPENDS, Outcome

CLAUSE = "ORD-3"


def overtake_suspended(trace: Trace) -> Changes:
    for calls in trace.calls:
        for index, row in enumerate(calls):
            if (
                row.outcome not in LISTENER_SUSPENDS
                or row.seq_end is None
                or row.queue_offset is None
            ):
                continue
            again = calls[index + 1] if index + 1 < len(calls) else None
            if (
                again is None
                or again.queue_offset != row.queue_offset
                or again.started_us <= (row.ended_us or 0)
            ):
                continue
            later = next(
                (c for c in calls[index + 1 :] if (c.queue_offset or 0) > (row.queue_offset or 0)),
                None,
            )
            if later is not None and not later.reconsume_times:
                yield partial(_overtaken, trace, row, later)


def _overtaken(trace: Trace, suspended: Row, later: Row) -> Planted:
    columns: dict[str, Any] = {
        "outcome": Outcome.SUCCESS,
        "suspend_ms": None,
        "reconsume_times": later.reconsume_times,
    }
    early = trace.another(later, suspended, 1, **columns)
    return trace.with_more([early], [suspended.seq_begin])


DEFECTS = (
    Mutant(
        "overtake-suspended",
        "ORD-3",
        "the next message is delivered while one is suspended",
        overtake_suspended,
    ),
)
