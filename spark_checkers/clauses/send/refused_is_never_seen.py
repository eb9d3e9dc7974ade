"""SND-3 over columns: per message, aggregates of its sends, and the first row that shows it."""

from __future__ import annotations

import numpy as np

from spark_checkers.rows import NEVER, NONE, Findings, Rows
from spark_checkers.segments import dense, positions
from spark_checkers.twin import Twin
from specs.vocabulary import Kind, Outcome

NOT_CERTAIN = (0, 1, 10, 11, 12)
ATTEMPTS_MAX = 9


def kernel(rows: Rows, findings: Findings) -> None:
    """Messages of which every send was refused for certain; those that somebody saw all the same."""
    message, count = dense(rows.run, rows.source)
    code, attempt = rows.number("code"), rows.number("attempt")
    sent = rows.are(Kind.SEND)
    refused = sent & rows.ended_as(Outcome.REFUSED) & (rows.end < NEVER) & (code != NONE) & ~np.isin(code, NOT_CERTAIN)
    refused[refused] &= ~rows.frames_twice(positions(refused))
    sends = np.bincount(message[sent], minlength=count)
    refusals = np.bincount(message[refused], minlength=count)
    tries = np.zeros(count, np.int64)
    np.maximum.at(tries, message[sent], np.where(attempt == NONE, 1, attempt)[sent])
    for_good = (refusals > 0) & (refusals == sends) & (tries <= refusals) & (refusals <= ATTEMPTS_MAX)
    seen = rows.are(Kind.DELIVER) | (rows.are(Kind.READ) & rows.ended_as(Outcome.OK))
    seen &= for_good[message]
    where = positions(refused & for_good[message])
    _, first = np.unique(message[where], return_index=True)
    findings.at_stake(where[first])
    shown = positions(seen)
    messages, first = np.unique(message[shown], return_index=True)
    for each, place in zip(messages.tolist(), shown[first].tolist(), strict=True):
        findings.violation([*where[message[where] == each].tolist(), place])


TWIN = Twin("SND-3", ("message_id", "origin_id", "outcome", "code", "attempt"), kernel)
find = TWIN.find
