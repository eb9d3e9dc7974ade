"""What breaks SND-5, planted in a history."""

from __future__ import annotations

import itertools
from functools import partial

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace
from specs.clauses.rows import is_copy_topic
from specs.vocabulary import Kind

CLAUSE = "SND-5"


def batch_interrupted(trace: Trace) -> Changes:
    found = {read.message_id: read for _send, read in planting.reads(trace)}
    found |= {row.message_id: row for row in trace.of(Kind.READ) if row.queue_offset is not None}
    parts = [
        row for row in trace.of(Kind.SEND) if row.value is not None and not is_copy_topic(row.topic)
    ]
    for part, after in itertools.pairwise(parts):
        read, other = found.get(part.message_id), found.get(after.message_id)
        if part.op_id == after.op_id and read is not None and other is not None:
            change = {other.seq_begin: {"message_id": f"{other.message_id}-other"}}
            about = (part.seq_begin, after.seq_begin, read.seq_begin, other.seq_begin)
            yield partial(trace.changed, change, about)


DEFECTS = (
    Mutant(
        "batch-interrupted",
        "SND-5",
        "another message lies within a batch",
        batch_interrupted,
        tagged=True,
    ),
)
