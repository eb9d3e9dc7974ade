"""A half message is seen only after its commit, and is asked about at most as often as the configuration says.

Seen: delivered, or read from the topic that it was sent to, from the begin of the delivery or until the end of the
read. A commit counts from its begin, whether or not it was answered, and whoever sent it: any producer of the group
may answer a broker's question. A message that was also sent in the ordinary way, at any time before, may be seen.
How often the broker asked is what the question itself says: a frame that comes twice is not a second question.
A rollback is not needed as evidence: what was rolled back was never committed. Where both were said, the clause is
silent, for a half message that was sent twice has two transactions. Says nothing about how soon a commit is seen.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.base import (
    CLOSED_WORLD,
    NOTHING,
    NOTHING_TAKEN_BACK,
    Context,
    Finding,
    Judge,
    at,
    is_copy_topic,
    who,
)
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "SND-6"
TITLE = "a half message waits for its commit"
STATEMENT = (
    "A half message is not seen unless it was committed, and its producer is asked about it at most as often as "
    "configured."
)
PARTY = Party.BROKER
KEY = Key.MESSAGE
PREMISE = (CLOSED_WORLD, NOTHING_TAKEN_BACK)
SOURCES = ("docs/sources.md#transactions",)
KINDS = frozenset({Kind.SEND, Kind.END_TRANSACTION, Kind.CHECK, Kind.DELIVER, Kind.READ})
NEEDS = frozenset({Kind.SEND})

COMMIT = 8
"""What END_TRANSACTION says for a commit."""


def wants(row: Row) -> bool:
    """Copies are made of messages that were seen."""
    return not is_copy_topic(row.topic)


def is_half(row: Row) -> bool:
    """Is this the send of a half message?"""
    return row.detail is not None and row.detail.split(",")[0] == "half"


@dataclass(frozen=True, slots=True)
class SeenUncommitted(Finding):
    half: Row
    seen: Row


@dataclass(frozen=True, slots=True)
class AskedTooOften(Finding):
    asked: Row
    most: int


class MessageJudge(Judge):
    """Remembers, for each topic, the first half send and whether the message may be seen."""

    __slots__ = ("free", "half")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.half: dict[str | None, Row] = {}
        self.free: set[str | None] = set()  # committed, or sent in the ordinary way

    def begins(self, row: Row) -> Iterable[Finding]:
        match row.kind:
            case Kind.SEND if is_half(row):
                self.half.setdefault(row.topic, row)
            case Kind.SEND:
                self.free.add(row.topic)
            case Kind.END_TRANSACTION if row.value == COMMIT:
                self.free.add(row.topic)
            case Kind.CHECK:
                return self._asked(row)
            case Kind.DELIVER:
                return self._seen(row)
            case _:
                pass
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        return self._seen(row) if row.kind is Kind.READ and row.outcome is Outcome.OK else NOTHING

    def _asked(self, row: Row) -> Iterable[Finding]:
        self.opportunities += 1
        most = self.config.transaction_check_max
        return (AskedTooOften(row, most),) if row.attempt is not None and row.attempt > most else NOTHING

    def _seen(self, row: Row) -> Iterable[Finding]:
        half = self.half.get(row.topic)
        if half is None:
            return NOTHING
        self.opportunities += 1
        if row.topic in self.free:
            return NOTHING
        return (SeenUncommitted(half, row),)


judge = MessageJudge


def explain(found: SeenUncommitted | AskedTooOften) -> str:
    if isinstance(found, AskedTooOften):
        asked = found.asked
        return (
            f"{who(asked)} was asked about the half message {asked.message_id} at {at(asked)}, for time number "
            f"{asked.attempt}, where {found.most} times are the most"
        )
    half, seen = found.half, found.seen
    what = "read" if seen.kind is Kind.READ else "was given"
    return (
        f"{who(seen)} {what} message {half.message_id} at {at(seen)}, though {who(half)} had sent it as a half "
        f"message at {at(half)} and nobody had committed it"
    )
