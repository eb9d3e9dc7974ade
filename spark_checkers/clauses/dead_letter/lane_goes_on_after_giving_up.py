"""What breaks DLQ-9, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import MS, Changes, Mutant, Trace
from specs.vocabulary import Kind, Outcome

CLAUSE = "DLQ-9"


def lane_stands_still(trace: Trace) -> Changes:
    """No call follows a dead letter for longer than the bound, though (as is said now) the messages were there."""
    works = {(rows[0].lane, rows[0].incarnation): rows for rows in trace.works}
    for last, letter, _after in planting.given_up(trace):
        rows = works[letter.lane, letter.incarnation]
        until_us = (letter.ended_us or 0) + trace.info.config.schedule_slack_ms * MS
        calls = [
            r
            for r in rows
            if r.kind in (Kind.DELIVER, Kind.DEAD_LETTER) and r.seq_begin > letter.seq_begin
        ]
        late = next((r for r in calls if r.kind is Kind.DELIVER and r.started_us > until_us), None)
        answered = [
            r
            for r in rows
            if r.kind is Kind.PULL and r.seq_end is not None and r.outcome is Outcome.OK
        ]
        pulls = [
            r for r in answered if r.value is not None and (r.seq_end or 0) < (letter.seq_end or 0)
        ]
        lock = planting.grant(trace, letter, (letter.ended_us or 0) - MS, until_us)
        if late is None or not pulls or lock is None or not last.reconsume_times:
            continue
        change = {pulls[-1].seq_begin: {"value": (late.queue_offset or 0) + 1}}
        gone = [r.seq_begin for r in calls if r.seq_begin < late.seq_begin]
        about = (letter.seq_begin, late.seq_begin)
        yield partial(
            lambda c, g, a: Trace(trace.changed(c).rows, trace.info).without(g, a),
            change,
            gone,
            about,
        )


DEFECTS = (
    Mutant(
        "lane-stands-still",
        "DLQ-9",
        "the lane waits after a message was given up",
        lane_stands_still,
    ),
)
