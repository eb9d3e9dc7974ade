"""SND-10 over columns: per message and topic, every row that shows it whole against its first send there."""

from __future__ import annotations

from functools import partial

import numpy as np

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.rows import Rows
from specs.facts.segments import (
    NEVER,
    NO_TEXT,
    NONE,
    NOWHERE,
    Ints,
    Mask,
    dense,
    first_of_each,
    ints,
    positions,
)
from specs.facts.stored import delayed, halves
from specs.vocabulary import DLQ_PREFIX, RETRY_PREFIX, Kind, Outcome

HALF = "half"
"""How the detail of a half message's send begins."""


def kernel(rows: Rows, findings: Findings) -> None:
    body, tags, key = rows.number("body_hash"), rows.text("tags"), rows.text("sharding_key")
    level, props = rows.number("delay_level"), rows.number("props_hash")
    copy = rows.starts_with("topic", RETRY_PREFIX) | rows.starts_with("topic", DLQ_PREFIX)
    whole = (body != NONE) & (rows.text("origin_id") == NO_TEXT) & ~copy
    sends = positions(whole & rows.are(Kind.SEND))
    read = rows.are(Kind.READ) & rows.ended_as(Outcome.OK) & (rows.end < NEVER)
    where = positions(whole & (rows.are(Kind.DELIVER) | read))
    if not len(sends) or not len(where):
        return
    message, count = dense(rows.run, rows.source, rows.text("topic"))
    first = np.full(count, NOWHERE, np.int64)
    first[message[sends[::-1]]] = sends[::-1]

    def differs(place: Ints, other: Ints) -> Mask:
        different: Mask = (
            (body[place] != body[other]) | (tags[place] != tags[other]) | (key[place] != key[other])
        )
        return different

    def other_properties(place: Ints, other: Ints) -> Mask:
        different: Mask = (props[place] != NONE) & (props[other] != NONE)
        different &= props[place] != props[other]
        return different

    # From the first send with another content on, nothing is said about a message in that topic.
    until = np.full(count, NEVER, np.int64)
    originals = first[message[sends]]
    others = sends[
        differs(sends, originals)
        | (level[sends] != level[originals])
        | other_properties(sends, originals)
    ]
    np.minimum.at(until, message[others], rows.begin[others])
    seen_at = np.where(rows.are(Kind.DELIVER)[where], rows.begin[where], rows.end[where])
    sent = first[message[where]]
    judged = (sent != NOWHERE) & (rows.begin[sent] < seen_at) & (seen_at < until[message[where]])
    where, sent = where[judged], sent[judged]
    findings.at_stake(where)
    told = (level[sent] != NONE) & (level[where] != NONE) & ~_half(rows)[sent]
    changed = differs(where, sent) | other_properties(where, sent)
    changed |= told & (np.minimum(level[sent], _last_level(rows)[sent]) != level[where])
    sent, where = sent[changed], where[changed]
    if len(sent):
        findings.violated(sent, where, certain=_is_certain(rows, sent, where))


def _is_certain(rows: Rows, sent: Ints, where: Ints) -> Mask:
    """Can nobody else have sent what was seen: in a closed world, or because the answer named that place?"""
    told = (rows.ended_as(Outcome.OK) & (rows.offset != NONE))[sent]
    told &= ~(delayed(rows) | halves(rows))[sent]
    there = (rows.queue[sent] == rows.queue[where]) & (rows.offset[sent] == rows.offset[where])
    closed = np.asarray([rows.context_of(row).info.closed_world for row in sent.tolist()], np.bool_)
    found: Mask = closed | (told & there)
    return found


def _half(rows: Rows) -> Mask:
    """Is the row about a half message?"""
    begins = np.asarray(
        [*(word.startswith(HALF) for word in rows.words("detail")), False], np.bool_
    )
    return begins[rows.text("detail")]


def _last_level(rows: Rows) -> Ints:
    """The highest delay level of each row's run; where there is no table, higher than any."""
    firsts = first_of_each(rows.run, len(rows.words("run"))).tolist()
    levels = [len(rows.config_of(place).delay_levels.split()) or NEVER for place in firsts]
    return ints(levels)[rows.run]


COLUMNS = (
    "message_id",
    "origin_id",
    "outcome",
    "body_hash",
    "props_hash",
    "tags",
    "sharding_key",
    "delay_level",
    "detail",
    "queue_offset",
)
TWIN = Twin("SND-10", COLUMNS, kernel)
find = TWIN.find


# ---- what breaks the clause, planted


def changed_body(trace: Trace) -> Changes:
    for send, read in planting.reads(trace):
        if send.message_id == read.message_id and None not in (send.body_hash, read.body_hash):
            change = {read.seq_begin: {"body_hash": (read.body_hash or 0) ^ 1}}
            about = (send.seq_begin, read.seq_begin)
            yield partial(trace.changed, change, about)


def content_unknown(trace: Trace) -> Changes:
    for send, read in planting.reads(trace):
        if send.body_hash is not None:
            change = {read.seq_begin: {"body_hash": None, "tags": "other"}}
            yield partial(trace.changed, change)


def lost_property(trace: Trace) -> Changes:
    for send, read in planting.reads(trace):
        if send.message_id == read.message_id and None not in (send.body_hash, read.body_hash):
            change = {
                send.seq_begin: {"props_hash": 4711},
                read.seq_begin: {"props_hash": 0},
            }
            about = (send.seq_begin, read.seq_begin)
            yield partial(trace.changed, change, about)


DEFECTS = (
    Mutant("changed-body", "SND-10", "a message is read with another body", changed_body),
    Mutant("lost-property", "SND-10", "a message is read without a property", lost_property),
)

LOOKALIKES = (Mutant("content-unknown", None, "a reader does not know the body", content_unknown),)
