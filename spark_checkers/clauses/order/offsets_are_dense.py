"""What breaks ORD-8, planted in a history."""

from __future__ import annotations

from functools import partial
from typing import Any

from spark_checkers.planting import Changes, Mutant, Trace
from specs.clauses.rows import is_copy_topic
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome

CLAUSE = "ORD-8"


def hole_between(trace: Trace) -> Changes:
    found: dict[Any, list[Row]] = {}
    for row in trace.of(Kind.READ):
        if not is_copy_topic(row.topic):
            found.setdefault(row.queue, []).append(row)
    died = {row.broker for row in trace.of(Kind.CRASH)}
    for rows in found.values():
        marker, *reads = rows
        if (
            marker.queue_offset is None
            and marker.outcome is Outcome.OK
            and marker.broker not in died
        ):
            for below, gone, above in zip(reads, reads[1:], reads[2:], strict=False):
                about = (below.seq_begin, above.seq_begin)
                yield partial(lambda g, a: trace.without([g], a), gone.seq_begin, about)


DEFECTS = (
    Mutant("hole-between", "ORD-8", "a message between two others is missing", hole_between),
)
