"""What breaks LSE-13, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers.planting import MS, Changes, Mutant, Trace
from specs.vocabulary import Kind

CLAUSE = "LSE-13"


def renewals_missing(trace: Trace) -> Changes:
    config = trace.info.config
    interval = (config.lock_interval_ms + config.schedule_slack_ms) * MS
    working = (Kind.DELIVER, Kind.PULL, Kind.COMMIT)
    for rows in trace.works:
        add = next(row for row in rows if row.kind is Kind.ADD)
        mine = (row for row in trace.of(Kind.ADD) if row.client_id == add.client_id)
        bound = interval + len({row.broker for row in mine}) * config.delay_bound_ms * MS
        late = next(
            (
                row
                for row in rows
                if row.kind in working and row.started_us - add.started_us > bound
            ),
            None,
        )
        if late is not None:
            asked = [
                row.seq_begin
                for row in rows
                if row.kind is Kind.LOCK and row.seq_begin < late.seq_begin
            ]
            about = (add.seq_begin, late.seq_begin)
            yield partial(trace.without, asked, about)


DEFECTS = (
    Mutant(
        "renewals-missing",
        "LSE-13",
        "a client at work does not renew",
        renewals_missing,
        generated=False,
    ),
)
