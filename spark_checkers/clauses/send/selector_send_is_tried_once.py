"""SND-4 over columns: per message, every keyed send against the first one."""

from __future__ import annotations

import numpy as np

from spark_checkers.rows import NEVER, NO_TEXT, NONE, Findings, Rows
from spark_checkers.segments import dense, first_of_each, positions
from spark_checkers.twin import Twin
from specs.vocabulary import Kind, Outcome


def kernel(rows: Rows, findings: Findings) -> None:
    where = positions(rows.are(Kind.SEND) & (rows.text("sharding_key") != NO_TEXT))
    if not len(where):
        return
    message, count = dense(rows.run[where], rows.source[where])
    first = where[first_of_each(message, count)]
    failed = ~rows.ended_as(Outcome.OK) & (rows.end < NEVER)
    findings.at_stake(first[failed[first]])
    attempt = rows.number("attempt")
    attempt = np.where(attempt == NONE, 1, attempt)
    before = first[message]
    again = (attempt[where] > attempt[before]) & (rows.client[where] == rows.client[before])
    findings.at_stake(where[again])
    findings.violated(before[again], where[again])


TWIN = Twin(
    "SND-4", ("message_id", "origin_id", "client_id", "sharding_key", "attempt", "outcome"), kernel
)
find = TWIN.find
