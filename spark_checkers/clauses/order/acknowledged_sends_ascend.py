"""What breaks ORD-9, planted in a history."""

from __future__ import annotations

from functools import partial
from typing import Any

from spark_checkers.planting import Changes, Mutant, Trace
from specs.clauses.rows import is_copy_topic
from specs.history.row import Row

CLAUSE = "ORD-9"


def sends_swapped(trace: Trace) -> Changes:
    last: dict[Any, Row] = {}
    for row in trace.sent.values():
        before = last.get(row.queue)
        usual = not row.delay_level and not is_copy_topic(row.topic)
        if (
            usual
            and before is not None
            and before.seq_end is not None
            and before.seq_end < row.seq_begin
        ):
            change = {
                before.seq_begin: {"queue_offset": row.queue_offset},
                row.seq_begin: {"queue_offset": before.queue_offset},
            }
            yield partial(trace.changed, change)
        if usual:
            last[row.queue] = row


DEFECTS = (
    Mutant("sends-swapped", "ORD-9", "a later send is given the smaller offset", sends_swapped),
)
