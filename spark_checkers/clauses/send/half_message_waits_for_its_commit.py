"""SND-6 over columns: what was seen of half messages against their commits, and how often producers were asked."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Planted, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.rows import Rows
from specs.facts.segments import NEVER, NONE, NOWHERE, Ints, dense
from specs.facts.stored import COMMIT, halves, refused
from specs.facts.stored import copies as copies_of
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome


def kernel(rows: Rows, findings: Findings) -> None:
    """Per message and topic: the first half send, and the first moment from which it may be seen."""
    copies = copies_of(rows)
    message, count = dense(rows.run, rows.source, rows.text("topic"))
    sends = rows.are(Kind.SEND) & ~copies
    half = sends & halves(rows)
    commit = (
        rows.are(Kind.END_TRANSACTION)
        & (rows.value == COMMIT)
        & ~rows.ended_as(Outcome.REFUSED)
        & ~copies
    )
    first_half = np.full(count, NOWHERE, np.int64)
    begun = np.full(count, NEVER, np.int64)
    for at in np.flatnonzero(half).tolist():  # few messages are half ones
        if rows.begin[at] < begun[message[at]]:
            begun[message[at]], first_half[message[at]] = rows.begin[at], at
    free = np.full(count, NEVER, np.int64)
    frees = np.flatnonzero((sends & ~half & ~refused(rows)) | commit)
    np.minimum.at(free, message[frees], rows.begin[frees])

    deliver = rows.are(Kind.DELIVER)
    read = rows.are(Kind.READ) & rows.ended_as(Outcome.OK) & (rows.end < NEVER)
    seen = np.flatnonzero((deliver | read) & ~copies)
    when = np.where(deliver[seen], rows.begin[seen], rows.end[seen])
    mine = begun[message[seen]] < when
    seen, when = seen[mine], when[mine]
    findings.at_stake(seen)
    too_soon = free[message[seen]] >= when
    early = seen[too_soon]
    certain = np.asarray(
        [not _may_be_free_before(rows, at, frees[message[frees] == message[at]]) for at in early]
    )
    findings.violated(first_half[message[early]], early, certain=certain)

    asked = np.flatnonzero(rows.are(Kind.CHECK) & ~copies)
    findings.at_stake(asked)
    attempt = rows.number("attempt")[asked]
    findings.violated(
        asked[(attempt != NONE) & (attempt > rows.config("transaction_check_max", asked))],
        name="asked-too-often",
    )


def _may_be_free_before(rows: Rows, seen: int, frees: Ints) -> bool:
    """Did another clock time what frees the message so soon after that it may have come first?"""
    bound_us = rows.context_of(seen).info.clock_bound_us
    when = int(rows.started[seen] if rows.are(Kind.DELIVER)[seen] else rows.ended[seen])
    others = frees[rows.text("clock")[frees] != rows.text("clock")[seen]]
    return bool(bound_us) and bool(np.any(rows.started[others] <= when + bound_us))


TWIN = Twin(
    "SND-6", ("message_id", "origin_id", "outcome", "code", "detail", "value", "attempt"), kernel
)
find = TWIN.find


# ---- what breaks the clause, planted


def seen_half_message(trace: Trace) -> Changes:
    for send, read in planting.reads(trace):
        if send.message_id == read.message_id:
            yield partial(planting.as_half, trace, send)


def committed_half_message(trace: Trace) -> Changes:
    for send, read in planting.reads(trace):
        if send.message_id == read.message_id:
            yield partial(_committed, trace, send)


def _committed(trace: Trace, send: Row) -> Planted:
    unsaid = dict.fromkeys(
        ("queue_offset", "sharding_key", "key_seq", "body_hash", "tags", "view", "attempt", "code")
    )
    more: dict[str, Any] = {
        **unsaid,
        "kind": Kind.END_TRANSACTION,
        "outcome": Outcome.SENT,
        "value": 8,
    }
    commit = trace.another(send, send, 1, at_end=False, **more)
    return Trace(planting.as_half(trace, send).rows, trace.info).with_more(
        [commit], [send.seq_begin]
    )


DEFECTS = (
    Mutant(
        "seen-half-message",
        "SND-6",
        "a half message is read though nobody committed it",
        seen_half_message,
    ),
)

LOOKALIKES = (
    Mutant("committed-half-message", None, "a half message was committed", committed_half_message),
)
