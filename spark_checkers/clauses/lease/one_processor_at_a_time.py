"""What breaks LSE-2, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers.planting import MS, STRANGER, Changes, Mutant, Planted, Trace
from specs.clauses.rows import is_manual
from specs.history.row import Row
from specs.vocabulary import Outcome

CLAUSE = "LSE-2"


def two_processors(trace: Trace) -> Changes:
    lease = min(trace.info.config.broker_lease_ms, trace.info.config.client_lease_ms) * MS
    for calls in trace.calls:
        if not calls:
            continue
        locks = [
            lock for lock in trace.locks(calls[0].lane) if lock.client_id == calls[0].client_id
        ]
        for row in calls:
            if (
                row.outcome is not Outcome.SUCCESS
                or row.seq_end is None
                or row.reconsume_times
                or is_manual(row)
            ):
                continue
            before = [lock for lock in locks if (lock.seq_end or 0) < row.seq_begin]
            if (
                before
                and row.started_us - before[-1].started_us < lease // 2
                and row.seq_end > row.seq_begin
            ):
                yield partial(_processed, trace, row)


def _processed(trace: Trace, row: Row) -> Planted:
    columns = {"client_id": STRANGER, "process": STRANGER, "incarnation": f"{STRANGER}#1"}
    return trace.with_more([trace.another(row, row, 1, at_end=False, **columns)], [row.seq_begin])


DEFECTS = (
    Mutant(
        "two-processors", "LSE-2", "a second client's call begins during a call", two_processors
    ),
)
