"""LIV-4 over columns: only pulls that took longer than a message could be sent in are looked at, queue by queue."""

from __future__ import annotations

from functools import partial

import numpy as np

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Planted, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.rows import Rows
from specs.facts.segments import MS, NEVER, NONE, Ints, by_time
from specs.facts.stored import COLUMNS as SEND_COLUMNS
from specs.facts.stored import STORED_WEAKLY, copies, delayed, halves
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome


def kernel(rows: Rows, findings: Findings) -> None:
    original = ~copies(rows) & (rows.offset != NONE) & (rows.end < NEVER)
    pulls = np.flatnonzero(rows.are(Kind.PULL) & rows.ended_as(Outcome.OK) & original)
    pulls = pulls[
        (rows.ended[pulls] < NEVER)
        & (rows.ended[pulls] - rows.started[pulls] >= _slack_us(rows, pulls))
    ]
    if not len(pulls):
        return
    there = (
        rows.are(Kind.SEND) & rows.ended_as(Outcome.OK) & original & ~halves(rows) & ~delayed(rows)
    )
    sends = np.flatnonzero(
        there & ~np.isin(rows.number("code"), list(STORED_WEAKLY)) & (rows.ended < NEVER)
    )
    sends = sends[by_time(rows.queue[sends], rows.end[sends])]
    of_queue, wanted = rows.queue[sends], rows.queue[pulls]
    low, high = (
        np.searchsorted(of_queue, wanted, "left"),
        np.searchsorted(of_queue, wanted, "right"),
    )
    for pull, first, last in zip(pulls.tolist(), low.tolist(), high.tolist(), strict=True):
        sent = _first_that_came(rows, pull, sends[first:last])
        if sent is None or _ends_before(rows, pull, sent):
            continue
        if _had_a_clear_way(rows, pull):
            findings.at_stake_times(pull, 1)
            if rows.ended[pull] > rows.ended[sent] + _slack_us(rows, np.asarray([pull]))[0]:
                findings.violation([pull, sent])


def _ends_before(rows: Rows, pull: int, sent: int) -> bool:
    """Was the answer given for earlier messages? One of which all lie before this one was given before it came."""
    value = int(rows.number("value")[pull])
    return int(rows.offset[pull]) < value <= int(rows.offset[sent])


def _slack_us(rows: Rows, where: Ints) -> Ints:
    """The slack of a timer, and what clocks may differ by."""
    return rows.config("schedule_slack_ms", where) * MS + np.asarray(
        [rows.context_of(int(place)).info.clock_bound_us for place in where], np.int64
    )


def _first_that_came(rows: Rows, pull: int, sends: Ints) -> int | None:
    """The first message that was acknowledged behind the pull's offset while the pull waited. sends: by their ends."""
    ends = rows.end[sends]
    during = sends[np.searchsorted(ends, rows.begin[pull]) : np.searchsorted(ends, rows.end[pull])]
    waited = rows.started[during] - rows.started[pull] >= _slack_us(rows, np.asarray([pull]))[0]
    epoch, mine = rows.number("broker_epoch")[during], int(rows.number("broker_epoch")[pull])
    one_life = (epoch == mine) | (epoch == NONE) | (mine == NONE)
    found = during[waited & one_life & (rows.offset[during] >= rows.offset[pull])]
    return int(found[0]) if len(found) else None


def _had_a_clear_way(rows: Rows, pull: int) -> bool:
    """Did both live, and did nothing stand in the way of the pull or its answer?"""
    context, now = rows.context_of(pull), int(rows.end[pull])
    client, broker = rows.name_of("client_id", pull), rows.name_of("broker", pull)
    begin, epoch = int(rows.begin[pull]), int(rows.number("broker_epoch")[pull])
    if context.broker_died_since(broker, begin, epoch, now) or context.client_died_between(
        client, begin, now
    ):
        return False
    return not rows.was_disturbed(pull, int(rows.ended[pull]), now)


TWIN = Twin(
    "LIV-4",
    tuple(dict.fromkeys(["client_id", "started_us", "ended_us", "value", *SEND_COLUMNS])),
    kernel,
)
find = TWIN.find


# ---- what breaks the clause, planted


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
