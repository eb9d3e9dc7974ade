"""What breaks SND-4, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Planted, Trace
from specs.history.row import Row
from specs.vocabulary import Outcome

CLAUSE = "SND-4"


def keyed_send_again(trace: Trace) -> Changes:
    for send, _read in planting.reads(trace):
        if send.sharding_key is not None and send.attempt == 1:
            yield partial(_sent_again, trace, send)


def _sent_again(trace: Trace, send: Row) -> Planted:
    unknown = {"outcome": Outcome.UNKNOWN, "code": None, "queue_offset": None}
    again = trace.another(send, send, 1, attempt=2)
    return Trace(trace.changed({send.seq_begin: unknown}).rows, trace.info).with_more(
        [again], [send.seq_begin]
    )


DEFECTS = (
    Mutant(
        "keyed-send-again",
        "SND-4",
        "an unanswered send with a key is tried again",
        keyed_send_again,
    ),
)
