"""What breaks SND-2, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace

CLAUSE = "SND-2"


def invented_message(trace: Trace) -> Changes:
    for send, read in planting.reads(trace):
        if send.message_id == read.message_id:
            yield partial(lambda s, r: trace.without([s.seq_begin], [r.seq_begin]), send, read)


DEFECTS = (Mutant("invented-message", "SND-2", "a message was never sent", invented_message),)
