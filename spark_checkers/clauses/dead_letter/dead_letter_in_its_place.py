"""What breaks DLQ-8, planted in a history."""

from __future__ import annotations

from functools import partial
from typing import Any

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace
from specs.clauses.rows import is_copy_topic
from specs.history.row import Row
from specs.vocabulary import Kind

CLAUSE = "DLQ-8"


def copy_in_its_own_topic(trace: Trace) -> Changes:
    """Before the end of the queue is read, a copy of a given-up message lies there."""
    last: dict[Any, Row] = {}
    for row in trace.of(Kind.READ):
        if row.queue_offset is not None and not is_copy_topic(row.topic):
            last[row.queue] = row
    for _last, letter, _after in planting.given_up(trace):
        read = last.get(letter.queue)
        if read is not None and read.seq_begin > (letter.seq_end or 0):
            columns = {
                "message_id": f"{letter.message_id}-copy",
                "origin_id": letter.message_id,
                "body_hash": None,
            }
            place = {"queue_offset": (read.queue_offset or 0) + 1, "key_seq": None}
            yield partial(
                lambda r, c: trace.with_more([trace.another(r, r, 1, **c)], [r.seq_begin]),
                read,
                {**columns, **place},
            )


DEFECTS = (
    Mutant(
        "copy-in-its-topic",
        "DLQ-8",
        "a copy of a given-up message lies in its topic",
        copy_in_its_own_topic,
    ),
)
