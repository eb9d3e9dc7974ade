"""What breaks SND-13, planted in a history."""

from __future__ import annotations

from functools import partial
from typing import Any

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Planted, Trace
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome

CLAUSE = "SND-13"


def committed_half_missing(trace: Trace) -> Changes:
    for send, read in planting.missed(trace, 0):
        yield partial(_half_committed, trace, send, read)


def _half_committed(trace: Trace, send: Row, read: Row) -> Planted:
    halved = planting.as_half(trace, send)
    gone = Trace(halved.rows, trace.info).without([read.seq_begin], [send.seq_begin])
    bare: dict[str, Any] = dict.fromkeys(
        ("queue_offset", "body_hash", "tags", "key_seq", "attempt", "view", "detail")
    )
    said = {**bare, "kind": Kind.END_TRANSACTION, "outcome": Outcome.SENT, "value": 8, "code": None}
    commit = trace.another(send, send, 1, **said)
    return Trace(gone.rows, trace.info).with_more([commit], gone.about)


DEFECTS = (
    Mutant(
        "committed-half-missing",
        "SND-13",
        "a half message that was committed does not come",
        committed_half_missing,
        generated=False,
    ),
)
