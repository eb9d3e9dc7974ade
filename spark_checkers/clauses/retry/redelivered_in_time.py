"""What breaks RTY-2, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import MS, Changes, Mutant, Trace
from specs.clauses.retry.redelivered_in_time import LOCK_WAIT_MS
from specs.vocabulary import LISTENER_SUSPENDS, Kind

CLAUSE = "RTY-2"


def suspended_for_ever(trace: Trace) -> Changes:
    """No call follows a suspended one until the lease is renewed, long after."""
    config = trace.info.config
    brokers = len({row.broker for row in trace.of(Kind.ADD)})
    for rows in trace.works:
        calls = [row for row in rows if row.kind in (Kind.DELIVER, Kind.DEAD_LETTER)]
        for row in calls:
            used_up = 0 <= config.max_reconsume_times <= (row.reconsume_times or 0)
            if (
                row.outcome not in LISTENER_SUSPENDS
                or row.suspend_ms is None
                or used_up
                or row.ended_us is None
            ):
                continue
            due_us = row.ended_us + row.suspend_ms * MS
            until_us = due_us + config.schedule_slack_ms * MS + (brokers - 1) * LOCK_WAIT_MS * MS
            lock = planting.grant(trace, row, due_us - MS, until_us + MS)
            later = [
                r
                for r in trace.locks(row.lane)
                if r.client_id == row.client_id and r.started_us > until_us
            ]
            if lock is not None and later and later[0].seq_begin < planting.until_drop(rows):
                gone = [
                    r.seq_begin for r in calls if row.seq_begin < r.seq_begin < later[0].seq_begin
                ]
                about = (row.seq_begin, later[0].seq_begin)
                yield partial(trace.without, gone, about)


DEFECTS = (
    Mutant(
        "suspended-for-ever", "RTY-2", "a suspended message never comes again", suspended_for_ever
    ),
)
