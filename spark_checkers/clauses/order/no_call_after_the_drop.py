"""What breaks ORD-13, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers.planting import Changes, Mutant, Trace
from specs.vocabulary import Kind, Outcome

CLAUSE = "ORD-13"


def call_after_drop(trace: Trace) -> Changes:
    for rows in trace.works:
        calls = [row for row in rows if row.kind is Kind.DELIVER and row.outcome is Outcome.SUCCESS]
        drops = [row for row in rows if row.kind is Kind.DROP]
        if calls and drops:
            yield partial(
                lambda c, d: trace.with_more([trace.another(c, d, 1)], [d.seq_begin]),
                calls[-1],
                drops[-1],
            )


DEFECTS = (
    Mutant(
        "call-after-drop", "ORD-13", "a call starts after the lane was dropped", call_after_drop
    ),
)
