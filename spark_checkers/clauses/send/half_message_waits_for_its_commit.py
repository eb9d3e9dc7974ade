"""What breaks SND-6, planted in a history."""

from __future__ import annotations

from functools import partial
from typing import Any

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Planted, Trace
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome

CLAUSE = "SND-6"


def seen_half_message(trace: Trace) -> Changes:
    for send, read in planting.reads(trace):
        if send.message_id == read.message_id:
            yield partial(planting.as_half, trace, send)


def committed_half_message(trace: Trace) -> Changes:
    for send, read in planting.reads(trace):
        if send.message_id == read.message_id:
            yield partial(_committed, trace, send)


def _committed(trace: Trace, send: Row) -> Planted:
    unsaid = dict.fromkeys(
        ("queue_offset", "sharding_key", "key_seq", "body_hash", "tags", "view", "attempt", "code")
    )
    more: dict[str, Any] = {
        **unsaid,
        "kind": Kind.END_TRANSACTION,
        "outcome": Outcome.SENT,
        "value": 8,
    }
    commit = trace.another(send, send, 1, at_end=False, **more)
    return Trace(planting.as_half(trace, send).rows, trace.info).with_more(
        [commit], [send.seq_begin]
    )


DEFECTS = (
    Mutant(
        "seen-half-message",
        "SND-6",
        "a half message is read though nobody committed it",
        seen_half_message,
    ),
)

LOOKALIKES = (
    Mutant("committed-half-message", None, "a half message was committed", committed_half_message),
)
