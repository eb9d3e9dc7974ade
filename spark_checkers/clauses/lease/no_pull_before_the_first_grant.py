"""What breaks LSE-11, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers.planting import Changes, Mutant, Trace
from specs.vocabulary import Kind

CLAUSE = "LSE-11"


def pull_without_lease(trace: Trace) -> Changes:
    for rows in trace.works:
        add = next(row for row in rows if row.kind is Kind.ADD)
        pull = next((row for row in rows if row.kind is Kind.PULL), None)
        asked = [
            row.seq_begin
            for row in trace.lanes[add.lane]
            if row.kind is Kind.LOCK and row.client_id == add.client_id and pull is not None
        ]
        gone = [seq for seq in asked if pull is not None and seq < pull.seq_begin]
        if gone and pull is not None:
            yield partial(
                lambda g, a, p: trace.without(g, [a.seq_begin, p.seq_begin]), gone, add, pull
            )


DEFECTS = (
    Mutant(
        "pull-without-lease", "LSE-11", "the first grant of a client is missing", pull_without_lease
    ),
)
