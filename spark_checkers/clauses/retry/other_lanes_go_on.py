"""What breaks RTY-6, planted in a history."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial

from spark_checkers import planting
from spark_checkers.planting import MS, Changes, Mutant, Planted, Trace
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome

CLAUSE = "RTY-6"


def held_back(trace: Trace) -> Changes:
    """No call of a lane follows one that went well until the bound is over, and another lane was busy all the time."""
    config = trace.info.config
    slack_us = config.schedule_slack_ms * MS
    for rows in trace.works:
        for before, after in itertools.pairwise(row for row in rows if row.kind is Kind.DELIVER):
            went_well = (
                before.outcome is Outcome.SUCCESS
                and before.ended_us is not None
                and not before.reconsume_times
            )
            if not went_well or after.queue_offset != (before.queue_offset or 0) + 1:
                continue
            other = _call_of_another_lane(trace, before)
            pull = planting.fetched(rows, before, after.queue_offset)
            if other is None or other.ended_us is None or pull is None:
                continue
            until_us = max(before.ended_us or 0, other.started_us) + slack_us
            lock = planting.grant(trace, before, before.ended_us or 0, until_us)
            late = next(
                (
                    row
                    for row in trace.rows
                    if row.ended_us is not None and row.started_us > until_us
                ),
                None,
            )
            if lock is not None and late is not None and late.seq_begin < planting.until_drop(rows):
                gone = [
                    row.seq_begin
                    for row in rows
                    if row.kind is Kind.DELIVER and row.seq_begin > before.seq_begin
                ]
                yield partial(_held_back, trace, gone, other, after, late)


def _call_of_another_lane(trace: Trace, row: Row) -> Row | None:
    """The last one of its client that ended before the row did, and may have been suspended."""
    found = [
        other
        for other in trace.of(Kind.DELIVER)
        if other.client_id == row.client_id and other.group == row.group and other.lane != row.lane
        if other.seq_end is not None
        and other.seq_end < (row.seq_end or 0)
        and not other.reconsume_times
    ]
    return found[-1] if found and found[-1].started_us > row.started_us - MS * 500 else None


def _held_back(trace: Trace, gone: Sequence[int], other: Row, after: Row, late: Row) -> Planted:
    again = trace.another(after, late, 1)
    rested = other._replace(outcome=Outcome.SUSPEND, suspend_ms=30_000)
    left = set(gone)
    rows = [rested if row is other else row for row in trace.rows if row.seq_begin not in left]
    about = (other.seq_begin, again.seq_begin)
    return Planted(sorted([*rows, again], key=lambda row: row.seq_begin), tuple(sorted(about)))


DEFECTS = (
    Mutant(
        "held-back", "RTY-6", "a lane waits while another one rests", held_back, generated=False
    ),
)
