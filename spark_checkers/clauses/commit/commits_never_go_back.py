"""What breaks CMT-4, planted in a history."""

from __future__ import annotations

import itertools
from functools import partial

from spark_checkers.planting import Changes, Mutant, Trace
from specs.clauses.rows import acknowledges
from specs.vocabulary import Kind

CLAUSE = "CMT-4"


def commit_rewinds(trace: Trace) -> Changes:
    for rows in trace.works:
        add = next(row for row in rows if row.kind is Kind.ADD)
        ends = {
            (row.queue_offset or 0) + 1
            for row in rows
            if row.kind is Kind.DELIVER and acknowledges(row)
        }
        commits = [
            row
            for row in rows
            if row.kind is Kind.COMMIT and row.value is not None and row.detail is None
        ]
        for before, row in itertools.pairwise(commits):
            lower = max((end for end in ends if end < (before.value or 0)), default=None)
            apart = before.seq_end is not None and before.seq_end < row.seq_begin
            if apart and lower is not None and lower > (add.value or 0):
                change = {row.seq_begin: {"value": lower}}
                about = (before.seq_begin, row.seq_begin)
                yield partial(trace.changed, change, about)


def overlapping_commits(trace: Trace) -> Changes:
    for rows in trace.works:
        commits = [
            row
            for row in rows
            if row.kind is Kind.COMMIT and row.value is not None and row.detail is None
        ]
        for before, row in itertools.pairwise(commits):
            apart = before.seq_end is not None and before.seq_end < row.seq_begin
            longer = row.seq_end is not None and row.seq_end > row.seq_begin
            if apart and longer and (before.value or 0) < (row.value or 0):
                yield partial(
                    lambda b, r: trace.with_more(
                        [trace.another(r, r, 1, at_end=False, value=b.value)], [r.seq_begin]
                    ),
                    before,
                    row,
                )


def corrected_commit(trace: Trace) -> Changes:
    for rows in trace.works:
        commits = [row for row in rows if row.kind is Kind.COMMIT and row.value]
        for row in commits[1:-1]:
            change = {row.seq_begin: {"value": (row.value or 0) - 1, "detail": "corrected"}}
            yield partial(trace.changed, change)


DEFECTS = (Mutant("commit-rewinds", "CMT-4", "a commit goes back", commit_rewinds),)

LOOKALIKES = (
    Mutant(
        "overlapping-commits", None, "a lower commit overlaps a higher one", overlapping_commits
    ),
    Mutant("corrected-commit", None, "a broker's correction moves a commit back", corrected_commit),
)
