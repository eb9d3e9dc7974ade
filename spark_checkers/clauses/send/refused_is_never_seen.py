"""SND-3 over columns: per message, aggregates of its sends, and the first row that shows it."""

from __future__ import annotations

from functools import partial

import numpy as np

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Planted, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.rows import Rows
from specs.facts.segments import NONE, dense, positions
from specs.facts.stored import refused as certainly_refused
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome

ATTEMPTS_MAX = 9


def kernel(rows: Rows, findings: Findings) -> None:
    """Messages of which every send was refused for certain; those that somebody saw all the same."""
    message, count = dense(rows.run, rows.source)
    attempt = rows.number("attempt")
    sent = rows.are(Kind.SEND)
    refused = certainly_refused(rows)
    refused[refused] &= ~rows.frames_twice(positions(refused))
    sends = np.bincount(message[sent], minlength=count)
    refusals = np.bincount(message[refused], minlength=count)
    tries = np.zeros(count, np.int64)
    np.maximum.at(tries, message[sent], np.where(attempt == NONE, 1, attempt)[sent])
    for_good = (
        (refusals > 0) & (refusals == sends) & (tries <= refusals) & (refusals <= ATTEMPTS_MAX)
    )
    seen = rows.are(Kind.DELIVER) | (rows.are(Kind.READ) & rows.ended_as(Outcome.OK))
    seen &= for_good[message]
    where = positions(refused & for_good[message])
    shown = positions(seen)
    looked = where[np.asarray([_looked_for(rows, place) for place in where.tolist()], np.bool_)]
    at_stake = np.union1d(message[looked], message[shown])
    messages, first = np.unique(message[where], return_index=True)
    findings.at_stake(where[first[np.isin(messages, at_stake)]])
    messages, first = np.unique(message[shown], return_index=True)
    for each, place in zip(messages.tolist(), shown[first].tolist(), strict=True):
        findings.violation([*where[message[where] == each].tolist(), place])


def _looked_for(rows: Rows, place: int) -> bool:
    """Did anybody read its queue, or was a listener called for its topic, after the refusal?"""
    topic, broker = rows.name_of("topic", place) or None, rows.name_of("broker", place) or None
    queue_id = int(rows.number("queue_id")[place])
    looks = rows.context_of(place).looks
    queue = (topic, broker, None if queue_id == NONE else queue_id)
    return max(looks.get((topic,), 0), looks.get(queue, 0)) > int(rows.end[place])


TWIN = Twin("SND-3", ("message_id", "origin_id", "outcome", "code", "attempt"), kernel)
find = TWIN.find


# ---- what breaks the clause, planted


def seen_though_refused(trace: Trace) -> Changes:
    for send, read in planting.reads(trace):
        if send.message_id == read.message_id and send.attempt in (None, 1):
            change = {
                send.seq_begin: {"outcome": Outcome.REFUSED, "code": 14, "queue_offset": None}
            }
            about = (send.seq_begin, read.seq_begin)
            yield partial(trace.changed, change, about)


def refused_then_stored(trace: Trace) -> Changes:
    """A send without a key is refused, and stored at its second try."""
    for send, read in planting.reads(trace):
        if send.message_id == read.message_id and send.attempt == 1:
            yield partial(_stored_later, trace, send)


def _stored_later(trace: Trace, send: Row) -> Planted:
    refused = trace.another(
        send,
        send,
        1,
        at_end=False,
        outcome=Outcome.REFUSED,
        code=14,
        queue_offset=None,
        sharding_key=None,
    )
    later = Trace(trace.changed({send.seq_begin: {"attempt": 2}}).rows, trace.info)
    return later.with_more([refused], [send.seq_begin])


DEFECTS = (
    Mutant(
        "seen-though-refused", "SND-3", "a message that was refused is read", seen_though_refused
    ),
)

LOOKALIKES = (
    Mutant(
        "refused-then-stored",
        None,
        "a refused send is stored at its second try",
        refused_then_stored,
    ),
)
