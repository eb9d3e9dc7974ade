"""What breaks ORD-7, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace

CLAUSE = "ORD-7"


def another_message_there(trace: Trace) -> Changes:
    for send, read in planting.reads(trace):
        call = trace.first_calls.get((read.topic, read.broker, read.queue_id, read.queue_offset))
        if call is not None and send.message_id == read.message_id == call.message_id:
            change = {call.seq_begin: {"message_id": f"{read.message_id}-other"}}
            about = (call.seq_begin, read.seq_begin)
            yield partial(trace.changed, change, about)


DEFECTS = (
    Mutant(
        "another-message-there",
        "ORD-7",
        "a group is given another message than the drain",
        another_message_there,
    ),
)
