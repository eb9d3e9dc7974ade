"""What breaks SND-3, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Planted, Trace
from specs.history.row import Row
from specs.vocabulary import Outcome

CLAUSE = "SND-3"


def seen_though_refused(trace: Trace) -> Changes:
    for send, read in planting.reads(trace):
        if send.message_id == read.message_id and send.attempt in (None, 1):
            change = {
                send.seq_begin: {"outcome": Outcome.REFUSED, "code": 14, "queue_offset": None}
            }
            about = (send.seq_begin, read.seq_begin)
            yield partial(trace.changed, change, about)


def refused_then_stored(trace: Trace) -> Changes:
    """A send without a key is refused, and stored at its second try."""
    for send, read in planting.reads(trace):
        if send.message_id == read.message_id and send.attempt == 1:
            yield partial(_stored_later, trace, send)


def _stored_later(trace: Trace, send: Row) -> Planted:
    refused = trace.another(
        send,
        send,
        1,
        at_end=False,
        outcome=Outcome.REFUSED,
        code=14,
        queue_offset=None,
        sharding_key=None,
    )
    later = Trace(trace.changed({send.seq_begin: {"attempt": 2}}).rows, trace.info)
    return later.with_more([refused], [send.seq_begin])


DEFECTS = (
    Mutant(
        "seen-though-refused", "SND-3", "a message that was refused is read", seen_though_refused
    ),
)

LOOKALIKES = (
    Mutant(
        "refused-then-stored",
        None,
        "a refused send is stored at its second try",
        refused_then_stored,
    ),
)
