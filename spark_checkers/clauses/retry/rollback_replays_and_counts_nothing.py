"""What breaks RTY-9, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers.planting import Changes, Mutant, Trace
from specs.clauses.rows import is_manual
from specs.vocabulary import Outcome

CLAUSE = "RTY-9"


def rollback_counted(trace: Trace) -> Changes:
    for calls in trace.calls:
        for index, row in enumerate(calls):
            again = calls[index + 1] if index + 1 < len(calls) else None
            if (
                row.outcome is not Outcome.ROLLBACK
                or not is_manual(row)
                or again is None
                or row.seq_end is None
            ):
                continue
            if again.reconsume_times is not None and (again.queue_offset or 0) <= (
                row.queue_offset or 0
            ):
                change = {again.seq_begin: {"reconsume_times": again.reconsume_times + 1}}
                about = (row.seq_begin, again.seq_begin)
                yield partial(trace.changed, change, about)


DEFECTS = (
    Mutant(
        "rollback-counted",
        "RTY-9",
        "a replayed message was counted",
        rollback_counted,
        by_hand=True,
    ),
)
