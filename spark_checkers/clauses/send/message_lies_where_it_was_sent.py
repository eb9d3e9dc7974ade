"""What breaks SND-12, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace

CLAUSE = "SND-12"


def read_in_another_queue(trace: Trace) -> Changes:
    for send, read in planting.reads(trace):
        if send.message_id == read.message_id:
            change = {send.seq_begin: {"queue_id": (send.queue_id or 0) + 90, "attempt": 1}}
            about = (send.seq_begin, read.seq_begin)
            yield partial(trace.changed, change, about)


DEFECTS = (
    Mutant(
        "read-in-another-queue",
        "SND-12",
        "a message lies where nobody sent it",
        read_in_another_queue,
        generated=False,
    ),
)
