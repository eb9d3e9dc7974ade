"""What breaks CMT-9, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace
from specs.vocabulary import Kind

CLAUSE = "CMT-9"


def commit_forgotten(trace: Trace) -> Changes:
    for commit in planting.acknowledged(trace):
        nobodys = (
            max(row.value or 0 for row in trace.lanes[commit.lane] if row.kind is Kind.COMMIT)
            + 1_000
        )
        yield partial(
            lambda c, v: trace.with_more([planting.looked_up(trace, c, c, 1, v)], [c.seq_begin]),
            commit,
            nobodys,
        )


DEFECTS = (
    Mutant(
        "commit-forgotten", "CMT-9", "a look-up answers what nobody committed", commit_forgotten
    ),
)
