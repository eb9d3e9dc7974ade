"""What breaks DLQ-2, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace

CLAUSE = "DLQ-2"


def dead_letter_twice(trace: Trace) -> Changes:
    if trace.info.config.batch != 1:
        return
    for _marker, row in planting.dead_reads(trace):
        yield partial(
            lambda r: trace.with_more(
                [
                    trace.another(
                        r,
                        r,
                        1,
                        queue_offset=1_000_000 + (r.queue_offset or 0),
                        message_id=f"{r.message_id}-again",
                    )
                ],
                [r.seq_begin],
            ),
            row,
        )


DEFECTS = (
    Mutant(
        "dead-letter-twice",
        "DLQ-2",
        "a dead letter is there twice",
        dead_letter_twice,
        dead_letters=True,
    ),
)
