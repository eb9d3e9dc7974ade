"""What breaks DLQ-4, planted in a history."""

from __future__ import annotations

from functools import partial
from typing import Any

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace
from specs.history.row import Row

CLAUSE = "DLQ-4"


def dead_letters_reversed(trace: Trace) -> Changes:
    """All of them, so that those of one lane are among them."""
    queues: dict[Any, list[Row]] = {}
    for _marker, row in planting.dead_reads(trace):
        queues.setdefault(row.queue, []).append(row)
    kept = (
        "message_id",
        "origin_id",
        "sharding_key",
        "body_hash",
        "tags",
        "reconsume_times",
        "wall_us",
        "view",
    )
    for rows in queues.values():
        if len(rows) > 3:
            there = reversed([{name: getattr(row, name) for name in kept} for row in rows])
            changes = {row.seq_begin: columns for row, columns in zip(rows, there, strict=True)}
            about = (rows[0].seq_begin, rows[-1].seq_begin)
            yield partial(trace.changed, changes, about)


DEFECTS = (
    Mutant(
        "dead-letters-reversed",
        "DLQ-4",
        "dead letters lie the other way round",
        dead_letters_reversed,
        True,
    ),
)
