"""What breaks LIV-5, planted in a history."""

from __future__ import annotations

import itertools
from functools import partial

from spark_checkers import planting
from spark_checkers.planting import MS, Changes, Mutant, Trace
from specs.vocabulary import Kind, Outcome

CLAUSE = "LIV-5"


def called_late(trace: Trace) -> Changes:
    """No call of a lane follows one that went well until the bound is over, though the next message was there."""
    slack_us = trace.info.config.schedule_slack_ms * MS
    for rows in trace.works:
        for before, after in itertools.pairwise(row for row in rows if row.kind is Kind.DELIVER):
            went_well = (
                before.outcome is Outcome.SUCCESS
                and before.ended_us is not None
                and not before.reconsume_times
            )
            if not went_well or after.queue_offset != (before.queue_offset or 0) + 1:
                continue
            until_us = (before.ended_us or 0) + slack_us
            lock = planting.grant(trace, before, before.ended_us or 0, until_us)
            late = next(
                (
                    row
                    for row in trace.rows
                    if row.ended_us is not None and row.started_us > until_us
                ),
                None,
            )
            fetched = planting.fetched(rows, before, after.queue_offset) is not None
            if (
                fetched
                and lock is not None
                and late is not None
                and late.seq_begin < planting.until_drop(rows)
            ):
                gone = [
                    row.seq_begin
                    for row in rows
                    if row.kind is Kind.DELIVER and row.seq_begin > before.seq_begin
                ]
                yield partial(
                    lambda g, a, e: Trace(trace.without(g, ()).rows, trace.info).with_more(
                        [trace.another(a, e, 1)]
                    ),
                    gone,
                    after,
                    late,
                )


DEFECTS = (
    Mutant(
        "called-late", "LIV-5", "a lane's next message is called late", called_late, generated=False
    ),
)
