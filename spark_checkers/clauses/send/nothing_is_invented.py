"""SND-2 over columns: per message, the first send's begin against every delivery's begin and every read's end."""

from __future__ import annotations

import numpy as np

from spark_checkers.rows import NEVER, Findings, Rows
from spark_checkers.segments import Ints, dense
from spark_checkers.twin import Twin
from specs.vocabulary import Kind, Outcome


def seen(rows: Rows) -> Ints:
    """Positions of the deliveries and finished reads of runs that hold every producer."""
    read = rows.are(Kind.READ) & rows.ended_as(Outcome.OK) & (rows.end < NEVER)
    where = np.flatnonzero(rows.are(Kind.DELIVER) | read)
    found: Ints = where[rows.closed_world(where)]
    return found


def seen_at(rows: Rows, where: Ints) -> Ints:
    """When each is judged: a delivery at its begin, a read at its end."""
    return np.where(rows.are(Kind.DELIVER)[where], rows.begin[where], rows.end[where])


def kernel(rows: Rows, findings: Findings) -> None:
    """A message that was sent late, or never, was invented."""
    message, count = dense(rows.run, rows.source)
    first_send = np.full(count, NEVER, np.int64)
    sends = rows.of(Kind.SEND)
    np.minimum.at(first_send, message[sends], rows.begin[sends])
    where = seen(rows)
    findings.at_stake(where)
    findings.violated(where[first_send[message[where]] >= seen_at(rows, where)])


TWIN = Twin("SND-2", ("message_id", "origin_id", "outcome"), kernel)
find = TWIN.find
