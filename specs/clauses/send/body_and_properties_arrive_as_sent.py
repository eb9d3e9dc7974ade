"""Body, tags and sharding key of a message are, wherever it is read or delivered, those that it was sent with.

Decided by the hash of the body and the two properties. A row that has the body's hash shows the whole message: no
tags, or no key, then means that there are none. Rows without the hash are passed over. Copies among retries and dead
letters are the business of other clauses. Where one id was sent with different contents, nothing is said about it
from then on. A delivery is judged when it begins, a read when it ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.base import NOTHING, Context, Finding, Judge, at, is_copy_topic, who
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "SND-10"
TITLE = "body and properties arrive as sent"
STATEMENT = "A message is read and delivered with the body, the tags and the sharding key that it was sent with."
PARTY = Party.PAIR
KEY = Key.MESSAGE
PREMISE = ()
SOURCES = ("docs/sources.md#send", "docs/sources.md#store")
KINDS = frozenset({Kind.SEND, Kind.DELIVER, Kind.READ})
NEEDS = frozenset({Kind.SEND})


def wants(row: Row) -> bool:
    """Rows that show an original message whole."""
    return row.body_hash is not None and row.origin_id is None and not is_copy_topic(row.topic)


@dataclass(frozen=True, slots=True)
class Changed(Finding):
    sent: Row
    seen: Row


def contents(row: Row) -> tuple[int | None, str | None, str | None]:
    return (row.body_hash, row.tags, row.sharding_key)


class MessageJudge(Judge):
    """Remembers the message as it was sent."""

    __slots__ = ("is_one", "sent")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.sent: Row | None = None
        self.is_one = True

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.DELIVER:
            return self._seen(row)
        if row.kind is Kind.SEND:
            if self.sent is None:
                self.sent = row
            elif contents(self.sent) != contents(row):
                self.is_one = False
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        return self._seen(row) if row.kind is Kind.READ and row.outcome is Outcome.OK else NOTHING

    def _seen(self, row: Row) -> Iterable[Finding]:
        if self.sent is None or not self.is_one:
            return NOTHING
        self.opportunities += 1
        return NOTHING if contents(self.sent) == contents(row) else (Changed(self.sent, row),)


judge = MessageJudge


def explain(found: Changed) -> str:
    sent, seen = found.sent, found.seen
    other = "; ".join(
        f"{name} {now or 'none'} instead of {was or 'none'}"
        for name, was, now in zip(("body's hash", "tags", "sharding key"), contents(sent), contents(seen), strict=True)
        if was != now
    )
    return (
        f"message {sent.message_id}, sent by {who(sent)} at {at(sent)}, was seen by {who(seen)} at {at(seen)}, offset "
        f"{seen.queue_offset} of {seen.queue}, with another content: {other}"
    )
