"""Body, tags, sharding key, delay level and own properties of a message are, wherever it is seen, as they were sent.

Decided by the hash of the body and the two properties. A row that has the body's hash shows the whole message: no
tags, or no key, then means that there are none. Rows without the hash are passed over.
The application's own properties are compared by their hash, where both rows tell one: without it nobody looked.
The level is compared where both rows tell one: a message that is released goes on saying how long it was to wait (a
level beyond the table says the last one), 0 is what a message says that names none, and no level at all means that
nobody looked. A transaction's message has none: its end decides when it is seen.
Copies among retries and dead letters are the business of other clauses. Compared is what was sent to a topic and seen
in that topic: whoever sends a message on to another one may keep its id. Where one id was sent to a topic with
different contents, nothing is said about it there from then on. In an open world somebody who is not recorded may have
sent it on into the same topic: what was seen elsewhere than at the place that the send's answer names is at most
possibly the same message. A delivery is judged when it begins, a read when it ends.
"""

import numpy as np

from specs.clauses.terms import Finding, Findings, Row, Rows, at, who
from specs.facts.columns import NEVER, NO_TEXT, NONE, NOWHERE, Ints, Mask
from specs.facts.segments import dense, first_of_each, ints, positions
from specs.facts.stored import copies, delayed, halves, sightings
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "SND-10"
TITLE = "body and properties arrive as sent"
STATEMENT = (
    "A message is read and delivered with the body, the tags, the sharding key, the delay level and the application's "
    "own properties that it was sent with."
)
PARTY = Party.PAIR
KEY = Key.MESSAGE
PREMISE = ()
SOURCES = ("docs/sources.md#store", "docs/sources.md#send", "docs/sources.md#delay")
KINDS = frozenset({Kind.SEND, Kind.DELIVER, Kind.READ})
NEEDS = frozenset({Kind.SEND})
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
LOOKS_BACK = True


class Changed(Finding):
    """level: the delay level that the message ought to say, None where none was compared."""

    sent: Row
    seen: Row
    level: int | None


"""How the detail of a half message's send begins."""


def judge(rows: Rows, findings: Findings) -> None:
    body, tags, key = rows.number("body_hash"), rows.text("tags"), rows.text("sharding_key")
    level, props = rows.number("delay_level"), rows.number("props_hash")
    whole = (body != NONE) & (rows.text("origin_id") == NO_TEXT) & ~copies(rows)
    sends = positions(whole & rows.are(Kind.SEND))
    shows, seen_at = sightings(rows)
    where = positions(whole & shows)
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
    seen_at, sent = seen_at[where], first[message[where]]
    judged = (sent != NOWHERE) & (rows.begin[sent] < seen_at) & (seen_at < until[message[where]])
    where, sent = where[judged], sent[judged]
    findings.at_stake(where)
    told = (level[sent] != NONE) & (level[where] != NONE) & ~halves(rows)[sent]
    changed = differs(where, sent) | other_properties(where, sent)
    due = np.minimum(level[sent], _last_level(rows)[sent])
    changed |= told & (due != level[where])
    if not changed.any():
        return
    levels = np.where(told, due, NONE)[changed].tolist()
    sent, where = sent[changed], where[changed]
    sure = _is_certain(rows, sent, where).tolist()
    for one, two, each, certain in zip(sent.tolist(), where.tolist(), levels, sure, strict=True):
        also = {"level": None if each == NONE else each}
        findings.shown(Changed, {"sent": one, "seen": two}, also, certain=certain)


def _is_certain(rows: Rows, sent: Ints, where: Ints) -> Mask:
    """Can nobody else have sent what was seen: in a closed world, or because the answer named that place?"""
    told = (rows.ended_as(Outcome.OK) & (rows.offset != NONE))[sent]
    told &= ~(delayed(rows) | halves(rows))[sent]
    there = (rows.queue[sent] == rows.queue[where]) & (rows.offset[sent] == rows.offset[where])
    closed = np.asarray([rows.context_of(row).info.closed_world for row in sent.tolist()], np.bool_)
    found: Mask = closed | (told & there)
    return found


def _last_level(rows: Rows) -> Ints:
    """The highest delay level of each row's run; where there is no table, higher than any."""
    firsts = first_of_each(rows.run, len(rows.words("run"))).tolist()
    levels = [len(rows.config_of(place).delay_levels.split()) or NEVER for place in firsts]
    return ints(levels)[rows.run]


def contents(row: Row) -> tuple[int | None, str | None, str | None]:
    return (row.body_hash, row.tags, row.sharding_key)


def same_properties(row: Row, other: Row) -> bool:
    """Are the hashes of the application's own properties one, as far as both are known?"""
    return None in (row.props_hash, other.props_hash) or row.props_hash == other.props_hash


def explain(found: Changed) -> str:
    sent, seen = found.sent, found.seen
    names = ("body's hash", "tags", "sharding key", "delay level")
    level = None if found.level is None else seen.delay_level
    other = "; ".join(
        f"{name} {now or 'none'} instead of {was or 'none'}"
        for name, was, now in zip(
            names, (*contents(sent), found.level), (*contents(seen), level), strict=True
        )
        if was != now
    )
    if not same_properties(sent, seen):
        lost = f"own properties with the hash {seen.props_hash} instead of {sent.props_hash}"
        other = f"{other}; {lost}" if other else lost
    return (
        f"message {sent.message_id}, sent by {who(sent)} at {at(sent)}, was seen by {who(seen)} at {at(seen)}, offset "
        f"{seen.queue_offset} of {seen.queue}, with another content: {other}"
    )
