"""What breaks CMT-13, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace
from specs.vocabulary import Kind

CLAUSE = "CMT-13"


def released_without_a_commit(trace: Trace) -> Changes:
    for rows in trace.works:
        unlock = next((row for row in rows if row.kind is Kind.UNLOCK), None)
        finished = planting.finished(rows)
        if (
            unlock is None
            or not finished
            or any(row.detail for row in rows if row.kind is Kind.COMMIT)
        ):
            continue
        last = max(finished, key=lambda row: row.queue_offset or 0)
        told = [
            row
            for row in rows
            if row.kind is Kind.COMMIT and (row.value or 0) > (last.queue_offset or 0)
        ]
        if told and all(row.seq_begin < unlock.seq_begin for row in told):
            gone, about = [row.seq_begin for row in told], (last.seq_begin, unlock.seq_begin)
            yield partial(trace.without, gone, about)


DEFECTS = (
    Mutant(
        "released-without-a-commit",
        "CMT-13",
        "a lane is given back unreported",
        released_without_a_commit,
    ),
)
