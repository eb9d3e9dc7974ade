"""What breaks SND-11, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import MS, Changes, Mutant, Planted, Trace
from specs.history.row import Row

CLAUSE = "SND-11"


def delayed_message_missing(trace: Trace) -> Changes:
    for send, read in planting.missed(trace, 1_000 * MS):
        yield partial(_delayed, trace, send, read)


def _delayed(trace: Trace, send: Row, read: Row) -> Planted:
    about = (send.seq_begin,)
    gone = trace.without([read.seq_begin], about)
    change = {send.seq_begin: {"delay_level": 1, "key_seq": None}}
    return Trace(gone.rows, trace.info).changed(change, about)


DEFECTS = (
    Mutant(
        "delayed-message-missing",
        "SND-11",
        "a delayed message does not come",
        delayed_message_missing,
        generated=False,
    ),
)
