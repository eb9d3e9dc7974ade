"""What breaks ORD-1, planted in a history."""

from __future__ import annotations

from functools import partial
from typing import Any

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace

CLAUSE = "ORD-1"


def key_strays(trace: Trace) -> Changes:
    for before, row in planting.keyed(trace):
        yield partial(planting.moved, trace, before, row)


def queues_changed(trace: Trace) -> Changes:
    """The list of queues is another one for a moment, and the key has another queue in it."""
    for send, read in planting.reads(trace):
        if send.view is not None and send.message_id == read.message_id:
            more: dict[str, Any] = {
                "view": f"{send.view} z/9",
                "broker": "z",
                "queue_id": 9,
                "queue_offset": 0,
                "message_id": f"{send.message_id}-moved",
            }
            yield partial(
                lambda s, m: trace.with_more([trace.another(s, s, 1, **m)], [s.seq_begin]),
                send,
                more,
            )


DEFECTS = (
    Mutant(
        "key-strays",
        "ORD-1",
        "a later message of a key lies in another queue",
        key_strays,
        generated=False,
    ),
)

LOOKALIKES = (
    Mutant(
        "queues-changed",
        None,
        "a key moves with the list of queues",
        queues_changed,
        generated=False,
    ),
)
