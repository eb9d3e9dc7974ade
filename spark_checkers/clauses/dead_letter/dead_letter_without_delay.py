"""What breaks DLQ-7, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import MS, Changes, Mutant, Trace

CLAUSE = "DLQ-7"


def slow_dead_letter(trace: Trace) -> Changes:
    late_us = (trace.info.config.dead_letter_bound_ms + 5_000) * MS
    for _marker, row in planting.dead_reads(trace):
        if row.wall_us is not None:
            change = {row.seq_begin: {"wall_us": row.wall_us + late_us}}
            yield partial(trace.changed, change)


DEFECTS = (
    Mutant(
        "slow-dead-letter",
        "DLQ-7",
        "a dead letter was stored late",
        slow_dead_letter,
        dead_letters=True,
    ),
)
