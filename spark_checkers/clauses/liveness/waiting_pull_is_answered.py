"""What breaks LIV-4, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import MS, Changes, Mutant, Planted, Trace
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome

CLAUSE = "LIV-4"


def woken_by_nobody(trace: Trace) -> Changes:
    """A message is acknowledged where a pull waits, which is answered only long after."""
    slack_us = (trace.info.config.schedule_slack_ms + 1) * MS
    sent = {
        row.queue: row for row in trace.sent.values() if row.detail is None and not row.delay_level
    }
    for pull in trace.of(Kind.PULL):
        like = sent.get(pull.queue)
        if like is None or pull.queue_offset is None or pull.seq_end is not None:
            continue
        came = planting.later(trace, pull, slack_us)
        answered = None if came is None else planting.later(trace, came, slack_us)
        if came is not None and answered is not None:
            yield partial(_woken_late, trace, pull, like, came, answered)


def _woken_late(trace: Trace, pull: Row, like: Row, came: Row, answered: Row) -> Planted:
    new = {"message_id": f"{like.message_id}-planted", "sharding_key": None, "key_seq": None}
    sent = trace.another(like, came, 1, at_end=False, queue_offset=pull.queue_offset, **new)
    found = {"outcome": Outcome.OK, "code": 0, "value": (pull.queue_offset or 0) + 1, "detail": "1"}
    end = {"seq_end": answered.seq_begin + 1, "ended_us": answered.started_us}
    return Trace(trace.changed({pull.seq_begin: {**found, **end}}).rows, trace.info).with_more(
        [sent], [pull.seq_begin]
    )


DEFECTS = (
    Mutant(
        "woken-by-nobody",
        "LIV-4",
        "a message comes, and a pull waits on",
        woken_by_nobody,
        generated=False,
    ),
)
