"""SND-12 over columns: per message and topic, the queues that its sends name against those in which it was seen."""

from __future__ import annotations

from functools import partial

import numpy as np

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.rows import Rows
from specs.facts.segments import NEVER, NO_TEXT, NONE, Ints, dense, first_of_each
from specs.facts.stored import copies, refused
from specs.vocabulary import Kind, Outcome

EVIDENCE_MAX = 9


def kernel(rows: Rows, findings: Findings) -> None:
    original = (
        (rows.text("origin_id") == NO_TEXT) & (rows.text("message_id") != NO_TEXT) & ~copies(rows)
    )
    sends = np.flatnonzero(original & rows.are(Kind.SEND))
    if not len(sends):
        return
    message, count = dense(rows.run, rows.source, rows.text("topic"))
    judged = _can_be_judged(rows, sends, message, count)
    deliver = rows.are(Kind.DELIVER)
    read = rows.are(Kind.READ) & rows.ended_as(Outcome.OK) & (rows.end < NEVER)
    placed = (rows.offset != NONE) & (rows.number("queue_id") != NONE)
    seen = np.flatnonzero(original & placed & (deliver | read) & judged[message])
    seen = seen[
        np.argsort(np.where(deliver[seen], rows.begin[seen], rows.end[seen]), kind="stable")
    ]
    pair, pairs = dense(message[seen], rows.queue[seen])
    first = seen[first_of_each(pair, pairs)]  # in each queue, the first time
    mine = sends[judged[message[sends]]]
    named, _ = dense(
        np.concatenate([message[first], message[mine]]),
        np.concatenate([rows.queue[first], rows.queue[mine]]),
    )
    elsewhere = ~np.isin(named[: len(first)], named[len(first) :])
    many = np.bincount(message[first], minlength=count) > EVIDENCE_MAX
    _few(rows, findings, first, (message, elsewhere, many, sends))


def _can_be_judged(rows: Rows, sends: Ints, message: Ints, count: int) -> np.ndarray:
    """Messages of which every try is known and names its queue, and not all were refused."""
    attempt = rows.number("attempt")[sends]
    total = np.bincount(message[sends], minlength=count)
    highest = np.zeros(count, np.int64)
    np.maximum.at(highest, message[sends], attempt)
    untold = np.bincount(message[sends], weights=attempt < 1, minlength=count)
    vague = (rows.number("queue_id")[sends] < 0) | (rows.text("broker")[sends] == NO_TEXT)
    unnamed = np.bincount(message[sends], weights=vague, minlength=count)
    stored = np.bincount(message[sends], weights=~refused(rows)[sends], minlength=count)
    found: np.ndarray = (
        (total < EVIDENCE_MAX) & (highest <= total) & (untold == 0) & (unnamed == 0) & (stored > 0)
    )
    return found


def _few(
    rows: Rows, findings: Findings, first: Ints, known: tuple[Ints, np.ndarray, np.ndarray, Ints]
) -> None:
    """Counted are the first queues in which a message was seen, as many as a witness can show."""
    message, elsewhere, many, sends = known
    kept = np.ones(len(first), np.bool_)
    when = np.where(rows.are(Kind.DELIVER), rows.begin, rows.end)
    for each in np.flatnonzero(many).tolist():
        its = np.flatnonzero(message[first] == each)
        kept[its[np.argsort(when[first[its]], kind="stable")][EVIDENCE_MAX:]] = False
    findings.at_stake(first[kept])
    for place in first[kept & elsewhere].tolist():
        findings.violation([*sends[message[sends] == message[place]].tolist(), place])


TWIN = Twin(
    "SND-12", ("message_id", "origin_id", "queue_offset", "outcome", "code", "attempt"), kernel
)
find = TWIN.find


# ---- what breaks the clause, planted


def read_in_another_queue(trace: Trace) -> Changes:
    for send, read in planting.reads(trace):
        if send.message_id == read.message_id:
            change = {send.seq_begin: {"queue_id": (send.queue_id or 0) + 90, "attempt": 1}}
            about = (send.seq_begin, read.seq_begin)
            yield partial(trace.changed, change, about)


DEFECTS = (
    Mutant(
        "read-in-another-queue",
        "SND-12",
        "a message lies where nobody sent it",
        read_in_another_queue,
        generated=False,
    ),
)
