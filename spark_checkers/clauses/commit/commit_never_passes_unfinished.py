"""What breaks CMT-1, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers.planting import Changes, Mutant, Trace
from specs.clauses.rows import acknowledges
from specs.vocabulary import Kind

CLAUSE = "CMT-1"


def commit_past_unfinished(trace: Trace) -> Changes:
    for rows in trace.works:
        commits = [
            row
            for row in rows
            if row.kind is Kind.COMMIT and row.value is not None and row.detail is None
        ]
        finished = {
            row.queue_offset: row.seq_end or 0
            for row in rows
            if row.kind is Kind.DELIVER and acknowledges(row)
        }
        for index, row in enumerate(commits):
            sent = trace.sent.get((row.topic, row.broker, row.queue_id, row.value))
            here = sent is not None and sent.seq_end is not None and sent.seq_end < row.seq_begin
            done = finished.get(row.value)
            running = done is not None and done > row.seq_begin
            later = commits[index + 1].value if index + 1 < len(commits) else None
            if here and running and (later is None or later > (row.value or 0)):
                change = {row.seq_begin: {"value": (row.value or 0) + 1}}
                about = [row.seq_begin, *([sent.seq_begin] if sent is not None else [])]
                yield partial(trace.changed, change, about)


DEFECTS = (
    Mutant(
        "commit-past-unfinished",
        "CMT-1",
        "a commit passes a running message",
        commit_past_unfinished,
    ),
)
