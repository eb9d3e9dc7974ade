"""ORD-1 over columns: every send against the last one of its key that ended before it began."""

from __future__ import annotations

import numpy as np

from spark_checkers.rows import NEVER, NO_TEXT, NONE, Findings, Rows
from spark_checkers.segments import NOWHERE, Timeline, dense, positions
from spark_checkers.twin import Twin
from specs.vocabulary import Kind, Outcome


def kernel(rows: Rows, findings: Findings) -> None:
    view, queue_id, delay = rows.text("view"), rows.number("queue_id"), rows.number("delay_level")
    sent = rows.are(Kind.SEND) & rows.ended_as(Outcome.OK) & (rows.end < NEVER) & (view != NO_TEXT)
    sent &= (queue_id != NONE) & (rows.offset != NONE) & ((delay == NONE) | (delay == 0))
    where = positions(sent)
    if not len(where):
        return
    columns = (rows.run, rows.client, rows.text("topic"), rows.text("sharding_key"))
    key, _ = dense(*(column[where] for column in columns))
    before = Timeline(key, rows.end[where]).last_before(key, rows.begin[where])
    later = np.flatnonzero(before != NOWHERE)
    one, two = where[before[later]], where[later]
    same = view[one] == view[two]
    one, two = one[same], two[same]
    findings.at_stake(two)
    broker = rows.text("broker")
    strayed = (broker[one] != broker[two]) | (queue_id[one] != queue_id[two])
    for place in np.flatnonzero(strayed | (rows.offset[two] <= rows.offset[one])).tolist():
        first, second = int(one[place]), int(two[place])
        if strayed[place] or not _died_between(rows, first, second):
            findings.violation([first, second])


def _died_between(rows: Rows, first: int, second: int) -> bool:
    """Did the broker of both crash after the first send began and before the second one ended?"""
    code = int(rows.text("broker")[first])
    broker = rows.words("broker")[code] if code != NO_TEXT else ""
    return rows.context_of(first).broker_died_between(
        broker, int(rows.begin[first]), int(rows.end[second])
    )


TWIN = Twin(
    "ORD-1", ("client_id", "sharding_key", "view", "queue_offset", "outcome", "delay_level"), kernel
)
find = TWIN.find
