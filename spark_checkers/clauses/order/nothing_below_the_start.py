"""What breaks ORD-5, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers.planting import Changes, Mutant, Trace
from specs.vocabulary import Kind

CLAUSE = "ORD-5"


def delivered_below_start(trace: Trace) -> Changes:
    for rows in trace.works:
        add = next(row for row in rows if row.kind is Kind.ADD)
        calls = [row for row in rows if row.kind is Kind.DELIVER]
        said = [row for row in rows if row.kind is Kind.FETCH_OFFSET or row.detail == "corrected"]
        if calls and add.value and all(row.value == add.value for row in said):
            below = {
                "queue_offset": add.value - 1,
                "message_id": f"{calls[0].message_id}-below",
                "key_seq": None,
            }
            about = (add.seq_begin, calls[0].seq_begin)
            yield partial(trace.changed, {calls[0].seq_begin: below}, about)


DEFECTS = (
    Mutant(
        "below-the-start",
        "ORD-5",
        "a new owner begins one message too early",
        delivered_below_start,
    ),
)
