"""What breaks CMT-3, planted in a history."""

from __future__ import annotations

from functools import partial
from typing import Any

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Planted, Trace
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome

CLAUSE = "CMT-3"


def committed_in_manual_mode(trace: Trace) -> Changes:
    for rows in trace.works:
        commit = next(
            (row for row in rows if row.kind is Kind.COMMIT and row.value is not None), None
        )
        if commit is not None:
            for row in planting.finished(rows):
                yield partial(_committed_after, trace, row, commit)


def _committed_after(trace: Trace, row: Row, like: Row) -> Planted:
    value = (row.queue_offset or 0) + 1
    columns: dict[str, Any] = {
        "value": value,
        "outcome": Outcome.SENT,
        "view": None,
        "code": None,
        "detail": None,
    }
    commit = trace.another(like, row, 1, **columns)
    manual = Trace(trace.changed({row.seq_begin: {"commit_mode": "manual"}}).rows, trace.info)
    return manual.with_more([commit], [row.seq_begin])


DEFECTS = (
    Mutant(
        "committed-in-manual-mode",
        "CMT-3",
        "a SUCCESS in manual mode is committed",
        committed_in_manual_mode,
    ),
)
