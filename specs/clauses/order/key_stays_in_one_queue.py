"""The sends of one producer and key, each acknowledged before the next began, lie in one queue in their order.

Compared are neighbours: a send, and the last one of the same producer, topic and key that was acknowledged before it
began. Both say in `view` by which selector and from which queues they chose; where that differs, or is not known, the
list of queues may have changed, and keys then move. A view that names no queues does not say which there were, and a
selector of the name `random` or `round-robin` promises nothing of a key. The order within the queue is not compared
across a crash of the broker, which may lose what it had not flushed; nor is that of a further try, whose place may be
the first one's: a log that takes each message once answers it again. Delayed messages lie elsewhere first and are left
out. So are sends whose answer names no place: the answer to a batch names that of its first message, so where
the others of it lie only readers show, and this clause asks none (SND-5 asks where a batch lies, ORD-9 compares with
what readers show).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import BROKER_LIVES, SAME_QUEUES
from specs.clauses.words import at, who
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "ORD-1"
TITLE = "a key stays in one queue"
STATEMENT = (
    "Sends of one producer and key, each acknowledged before the next began, under an unchanged queue list, lie in one "
    "queue in the order of their sending."
)
PARTY = Party.PAIR
KEY = Key.PRODUCER_KEY
PREMISE = (SAME_QUEUES, BROKER_LIVES)
SOURCES = ("docs/sources.md#selector", "docs/sources.md#send")
KINDS = frozenset({Kind.SEND})
NEEDS = frozenset({Kind.SEND})


BY_NO_KEY = frozenset({"random", "round-robin"})
"""Selectors that do not look at the key."""


def wants(row: Row) -> bool:
    """Acknowledged sends that say from which queues they chose, by a selector that looks at the key."""
    if row.outcome is not Outcome.OK or row.seq_end is None or row.delay_level:
        return False
    return chose_by_key(row) and row.queue_id is not None and row.queue_offset is not None


def chose_by_key(row: Row) -> bool:
    """Does the send say from which queues it chose, by a selector that looks at the key?"""
    selector, *queues = (row.view or "").split() or [""]
    return bool(queues) and selector not in BY_NO_KEY


@dataclass(frozen=True, slots=True)
class Strayed(Finding):
    earlier: Row
    later: Row


class KeyJudge(Judge):
    """Remembers the last acknowledged send, and for each one under way which that was when it began."""

    __slots__ = ("before", "last")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.last: Row | None = None
        self.before: dict[int, Row] = {}

    def begins(self, row: Row) -> Iterable[Finding]:
        if self.last is not None:
            self.before[row.seq_begin] = self.last
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        earlier, self.last = self.before.pop(row.seq_begin, None), row
        if earlier is None or earlier.view != row.view:
            return NOTHING
        self.opportunities += 1
        if (earlier.broker, earlier.queue_id) != (row.broker, row.queue_id):
            return (Strayed(earlier, row),)
        ascends = (row.queue_offset or 0) > (earlier.queue_offset or 0)
        if ascends or (row.attempt or 1) > 1:
            return NOTHING
        if self.context.broker_died_since(row.broker, earlier):
            return NOTHING
        return (Strayed(earlier, row),)


judge = KeyJudge


def explain(found: Strayed) -> str:
    earlier, later = found.earlier, found.later
    return (
        f"{who(later)} sent message {later.message_id} of key {later.sharding_key} at {at(later)}, and it lies at "
        f"offset {later.queue_offset} of {later.queue}, while message {earlier.message_id} of the same key, sent at "
        f"{at(earlier)} and acknowledged before, lies at offset {earlier.queue_offset} of {earlier.queue}"
    )
