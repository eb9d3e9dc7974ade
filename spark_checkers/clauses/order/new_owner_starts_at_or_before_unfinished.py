"""What breaks ORD-4, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers.planting import Changes, Mutant, Trace
from specs.vocabulary import Kind, Outcome

CLAUSE = "ORD-4"


def skip_at_handover(trace: Trace) -> Changes:
    for rows in trace.works:
        add = next(row for row in rows if row.kind is Kind.ADD)
        calls = [row for row in rows if row.kind is Kind.DELIVER]
        lane = trace.lanes[add.lane]
        looked = [r for r in lane if r.kind is Kind.FETCH_OFFSET and r.seq_begin < add.seq_begin]
        known = looked and looked[-1].outcome is Outcome.OK and looked[-1].value == add.value
        if (
            not calls
            or not known
            or looked[-1].client_id != add.client_id
            or calls[0].queue_offset != add.value
        ):
            continue
        if (add.topic, add.broker, add.queue_id, add.value) not in trace.sent:
            continue
        if any(
            r.kind is Kind.DELIVER and r.queue_offset == add.value and r.seq_begin < add.seq_begin
            for r in lane
        ):
            continue
        gone = {
            r.seq_begin
            for r in rows
            if r.kind in (Kind.DELIVER, Kind.DEAD_LETTER) and r.queue_offset == add.value
        }
        next_call = next((row for row in calls if row.seq_begin not in gone), None)
        if next_call is not None:
            about = (looked[-1].seq_begin, next_call.seq_begin)
            yield partial(trace.without, gone, about)


DEFECTS = (
    Mutant(
        "skip-at-handover", "ORD-4", "a new owner leaves its first message out", skip_at_handover
    ),
)
