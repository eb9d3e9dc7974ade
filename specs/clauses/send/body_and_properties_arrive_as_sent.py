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

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.rows import is_copy_topic
from specs.clauses.stored import lies_at_once, place
from specs.clauses.words import at, who
from specs.history.row import Row
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
LOOKS_BACK = True
HALF = "half"
"""How the detail of a half message's SEND begins."""


def wants(row: Row) -> bool:
    """Rows that show an original message whole."""
    return row.body_hash is not None and row.origin_id is None and not is_copy_topic(row.topic)


@dataclass(frozen=True, slots=True)
class Changed(Finding):
    """level: the delay level that the message ought to say, None where none was compared."""

    sent: Row
    seen: Row
    level: int | None


def contents(row: Row) -> tuple[int | None, str | None, str | None]:
    return (row.body_hash, row.tags, row.sharding_key)


def same_properties(row: Row, other: Row) -> bool:
    """Are the hashes of the application's own properties one, as far as both are known?"""
    return None in (row.props_hash, other.props_hash) or row.props_hash == other.props_hash


def is_the_same(sent: Row, again: Row) -> bool:
    """Is it the same message that is sent again, with all that is compared?"""
    return (
        contents(sent) == contents(again)
        and sent.delay_level == again.delay_level
        and same_properties(sent, again)
    )


def lies_there(sent: Row, seen: Row) -> bool:
    """Was the message seen at the place that its send's answer names?"""
    answered = sent.outcome is Outcome.OK and sent.queue_offset is not None
    return answered and lies_at_once(sent) and place(sent) == place(seen)


class MessageJudge(Judge):
    """Remembers the message as it was sent to each topic, None where it was sent there with different contents.

    last: the highest level of the broker's table, 0 without one.
    """

    __slots__ = ("last", "sent")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.last = len(self.config.delay_levels.split())
        self.sent: dict[str | None, Row | None] = {}

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.DELIVER:
            return self._seen(row)
        if row.kind is Kind.SEND:
            first = self.sent.setdefault(row.topic, row)
            if first is not None and not is_the_same(first, row):
                self.sent[row.topic] = None
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        return self._seen(row) if row.kind is Kind.READ and row.outcome is Outcome.OK else NOTHING

    def _seen(self, row: Row) -> Iterable[Finding]:
        sent = self.sent.get(row.topic)
        if sent is None:
            return NOTHING
        self.opportunities += 1
        level = self._level(sent, row)
        same = contents(sent) == contents(row) and level in (None, row.delay_level)
        if same and same_properties(sent, row):
            return NOTHING
        certain = self.context.info.closed_world or lies_there(sent, row)
        return (Changed(sent, row, level, certain=certain),)

    def _level(self, sent: Row, seen: Row) -> int | None:
        if (
            sent.delay_level is None
            or seen.delay_level is None
            or (sent.detail or "").startswith(HALF)
        ):
            return None
        return min(sent.delay_level, self.last) if self.last else sent.delay_level


judge = MessageJudge


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
