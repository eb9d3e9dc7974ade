"""What breaks SND-9, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers.planting import Changes, Mutant, Planted, Trace
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome

CLAUSE = "SND-9"


def stored_behind(trace: Trace) -> Changes:
    last: dict[tuple[str | None, ...], Row] = {}
    for send in trace.of(Kind.SEND):
        key = (send.client_id, send.topic, send.sharding_key)
        plain = (
            send.attempt == 1
            and send.outcome is Outcome.OK
            and send.key_seq is not None
            and not send.delay_level
        )
        before = last.get(key) if plain else None
        if before is not None and before.queue == send.queue and send.sharding_key is not None:
            yield partial(_stored_behind, trace, before, send)
        if plain:
            last[key] = send


def _stored_behind(trace: Trace, before: Row, send: Row) -> Planted:
    refused = {"outcome": Outcome.REFUSED, "code": 14, "queue_offset": None}
    again = trace.another(
        before, send, 1, attempt=2, queue_offset=1_000_000 + (send.queue_offset or 0)
    )
    changed = Trace(trace.changed({before.seq_begin: refused}).rows, trace.info)
    return changed.with_more([again], [before.seq_begin, send.seq_begin])


DEFECTS = (
    Mutant(
        "stored-behind", "SND-9", "a refused message is stored behind its successor", stored_behind
    ),
)
