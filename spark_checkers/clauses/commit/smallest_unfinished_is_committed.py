"""What breaks CMT-10, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers.planting import CONCURRENT, KEY_ORDERED, Changes, Mutant, Trace
from specs.clauses.rows import acknowledges
from specs.vocabulary import Kind

CLAUSE = "CMT-10"


def commit_past_the_smallest(trace: Trace) -> Changes:
    for rows in trace.works:
        calls = [row for row in rows if row.kind is Kind.DELIVER and acknowledges(row)]
        for row in rows:
            if row.kind is Kind.COMMIT and row.detail is None:
                running = [c for c in calls if c.seq_begin < row.seq_begin < (c.seq_end or 0)]
                if running:
                    change = {row.seq_begin: {"value": (running[-1].queue_offset or 0) + 1}}
                    about = (running[-1].seq_begin, row.seq_begin)
                    yield partial(trace.changed, change, about)


DEFECTS = (
    Mutant(
        "commit-past-the-smallest",
        "CMT-10",
        "a commit passes a call that runs",
        commit_past_the_smallest,
        generated=False,
        consumed=CONCURRENT,
    ),
    Mutant(
        "commit-past-a-key",
        "CMT-10",
        "a commit passes a call that runs",
        commit_past_the_smallest,
        generated=False,
        consumed=KEY_ORDERED,
    ),
)
