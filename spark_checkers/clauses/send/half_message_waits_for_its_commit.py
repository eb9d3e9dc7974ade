"""SND-6 over columns: what was seen of half messages against their commits, and how often producers were asked."""

from __future__ import annotations

import numpy as np

from spark_checkers.rows import NEVER, NONE, Findings, Rows
from spark_checkers.segments import NOWHERE, dense
from spark_checkers.twin import Twin
from specs.clauses.base import is_copy_topic
from specs.vocabulary import Kind, Outcome

COMMIT = 8


def kernel(rows: Rows, findings: Findings) -> None:
    """Per message and topic: the first half send, and the first moment from which it may be seen."""
    copies = np.asarray([*(is_copy_topic(word) for word in rows.words("topic")), False], np.bool_)[rows.text("topic")]
    says_half = np.asarray([*(word == "half" or word.startswith("half,") for word in rows.words("detail")), False])
    message, count = dense(rows.run, rows.source, rows.text("topic"))
    sends = rows.are(Kind.SEND) & ~copies
    half = sends & says_half[rows.text("detail")]
    commit = rows.are(Kind.END_TRANSACTION) & (rows.value == COMMIT) & ~copies
    first_half = np.full(count, NOWHERE, np.int64)
    begun = np.full(count, NEVER, np.int64)
    for at in np.flatnonzero(half).tolist():  # few messages are half ones
        if rows.begin[at] < begun[message[at]]:
            begun[message[at]], first_half[message[at]] = rows.begin[at], at
    free = np.full(count, NEVER, np.int64)
    frees = np.flatnonzero((sends & ~half) | commit)
    np.minimum.at(free, message[frees], rows.begin[frees])

    deliver = rows.are(Kind.DELIVER)
    read = rows.are(Kind.READ) & rows.ended_as(Outcome.OK) & (rows.end < NEVER)
    seen = np.flatnonzero((deliver | read) & ~copies)
    when = np.where(deliver[seen], rows.begin[seen], rows.end[seen])
    mine = begun[message[seen]] < when
    seen, when = seen[mine], when[mine]
    findings.at_stake(seen)
    too_soon = free[message[seen]] >= when
    findings.violated(first_half[message[seen[too_soon]]], seen[too_soon])

    asked = np.flatnonzero(rows.are(Kind.CHECK) & ~copies)
    findings.at_stake(asked)
    attempt = rows.number("attempt")[asked]
    findings.violated(
        asked[(attempt != NONE) & (attempt > rows.config("transaction_check_max", asked))], name="asked-too-often"
    )


TWIN = Twin("SND-6", ("message_id", "origin_id", "outcome", "detail", "value", "attempt"), kernel)
find = TWIN.find
