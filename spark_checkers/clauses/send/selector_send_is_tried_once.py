"""SND-4 over columns: per message, every keyed send against the first one."""

from __future__ import annotations

from functools import partial

import numpy as np

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Planted, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.rows import Rows
from specs.facts.segments import NEVER, NO_TEXT, NONE, dense, first_of_each, positions
from specs.history.row import Row
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


# ---- what breaks the clause, planted


def keyed_send_again(trace: Trace) -> Changes:
    for send, _read in planting.reads(trace):
        if send.sharding_key is not None and send.attempt == 1:
            yield partial(_sent_again, trace, send)


def _sent_again(trace: Trace, send: Row) -> Planted:
    unknown = {"outcome": Outcome.UNKNOWN, "code": None, "queue_offset": None}
    again = trace.another(send, send, 1, attempt=2)
    return Trace(trace.changed({send.seq_begin: unknown}).rows, trace.info).with_more(
        [again], [send.seq_begin]
    )


DEFECTS = (
    Mutant(
        "keyed-send-again",
        "SND-4",
        "an unanswered send with a key is tried again",
        keyed_send_again,
    ),
)
