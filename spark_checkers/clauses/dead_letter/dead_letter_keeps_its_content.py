"""What breaks DLQ-5, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace

CLAUSE = "DLQ-5"


def changed_dead_letter(trace: Trace) -> Changes:
    for _marker, row in planting.dead_reads(trace):
        if row.body_hash is not None:
            change = {row.seq_begin: {"body_hash": row.body_hash + 1}}
            yield partial(trace.changed, change)


def another_origin(trace: Trace) -> Changes:
    for _marker, row in planting.dead_reads(trace):
        if row.body_hash is not None:
            change = {row.seq_begin: {"view": f"{trace.info.run}-topic"}}
            yield partial(trace.changed, change)


DEFECTS = (
    Mutant(
        "changed-dead-letter",
        "DLQ-5",
        "a dead letter has another body",
        changed_dead_letter,
        dead_letters=True,
    ),
    Mutant(
        "another-origin",
        "DLQ-5",
        "a dead letter names another topic",
        another_origin,
        dead_letters=True,
    ),
)
