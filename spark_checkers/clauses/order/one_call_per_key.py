"""What breaks ORD-11, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers.planting import KEY_ORDERED, Changes, Mutant, Trace
from specs.history.row import Row
from specs.vocabulary import Outcome

CLAUSE = "ORD-11"


def key_overlaps(trace: Trace) -> Changes:
    for calls in trace.calls:
        last: dict[str | None, Row] = {}
        for row in calls:
            before = last.get(row.sharding_key)
            last[row.sharding_key] = row
            if (
                row.sharding_key is not None
                and before is not None
                and before.outcome is Outcome.SUCCESS
            ):
                change = {
                    before.seq_begin: {"seq_end": row.seq_begin + 1, "ended_us": row.started_us}
                }
                about = (before.seq_begin, row.seq_begin)
                yield partial(trace.changed, change, about)


DEFECTS = (
    Mutant(
        "key-overlaps",
        "ORD-11",
        "a call of a key begins while another one of it runs",
        key_overlaps,
        generated=False,
        consumed=KEY_ORDERED,
    ),
)
