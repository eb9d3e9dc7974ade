"""What breaks CMT-6, planted in a history."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from spark_checkers.planting import Changes, Mutant, Planted, Trace
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome

CLAUSE = "CMT-6"


def _dropped(trace: Trace) -> Iterator[tuple[Row, Row]]:
    """(the drop of an incarnation, the highest commit before it)."""
    for rows in trace.works:
        drop = next((row for row in rows if row.kind is Kind.DROP), None)
        commits = [
            row for row in rows if row.kind is Kind.COMMIT and row.value and row.detail is None
        ]
        before = [row for row in commits if drop is not None and row.seq_begin < drop.seq_begin]
        if drop is not None and before and rows[0].kind is Kind.ADD:
            yield drop, max(before, key=lambda row: (row.value or 0, row.seq_begin))


def _commit_at(trace: Trace, drop: Row, like: Row, value: int) -> Planted:
    columns: dict[str, Any] = {"value": value, "outcome": Outcome.SENT, "view": None, "code": None}
    return trace.with_more([trace.another(like, drop, 1, **columns)], [drop.seq_begin])


def progress_after_the_drop(trace: Trace) -> Changes:
    for drop, commit in _dropped(trace):
        done = [row for row in trace.lanes[drop.lane] if row.incarnation == drop.incarnation]
        if all(row.detail is None for row in done if row.kind is Kind.COMMIT):
            yield partial(lambda d, c: _commit_at(trace, d, c, (c.value or 0) + 1), drop, commit)


def told_again_after_the_drop(trace: Trace) -> Changes:
    for drop, commit in _dropped(trace):
        yield partial(lambda d, c: _commit_at(trace, d, c, c.value or 0), drop, commit)


DEFECTS = (
    Mutant(
        "progress-after-the-drop",
        "CMT-6",
        "more is committed after the drop",
        progress_after_the_drop,
    ),
)

LOOKALIKES = (
    Mutant(
        "told-again",
        None,
        "the last offset is committed again after the drop",
        told_again_after_the_drop,
    ),
)
