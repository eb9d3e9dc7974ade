"""LIV-4 over columns: only pulls that took longer than a message could be sent in are looked at, queue by queue."""

from __future__ import annotations

import numpy as np

from spark_checkers.rows import MS, NEVER, NONE, Findings, Rows
from spark_checkers.segments import Ints
from spark_checkers.stored import COLUMNS as SEND_COLUMNS
from spark_checkers.stored import STORED_WEAKLY, copies, delayed, halves
from spark_checkers.twin import Twin
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
    sends = sends[np.lexsort((rows.end[sends], rows.queue[sends]))]
    of_queue, wanted = rows.queue[sends], rows.queue[pulls]
    low, high = (
        np.searchsorted(of_queue, wanted, "left"),
        np.searchsorted(of_queue, wanted, "right"),
    )
    for pull, first, last in zip(pulls.tolist(), low.tolist(), high.tolist(), strict=True):
        sent = _first_that_came(rows, pull, sends[first:last])
        if sent is not None and _had_a_clear_way(rows, pull):
            findings.at_stake_times(pull, 1)
            if rows.ended[pull] > rows.ended[sent] + _slack_us(rows, np.asarray([pull]))[0]:
                findings.violation([pull, sent])


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
    "LIV-4", tuple(dict.fromkeys(["client_id", "started_us", "ended_us", *SEND_COLUMNS])), kernel
)
find = TWIN.find
