"""Within a broker's epoch everybody who is shown an offset of a queue is shown the same message there.

Who reads, whom a message is delivered to, and who was told at the end of a send where it lies: all of them name
an offset and a message's id, and the first to do so is compared with all later ones. A crash of the broker may lose
what was not flushed, and its offsets are then given anew; so nothing is compared across a crash, and of deliveries
after a crash only those of incarnations that were added after it: others may still hold what they pulled before. In an
open world the crash may have come before the first row: a delivery by an incarnation whose ADD was not seen leaves it
open (possible).
Sends to the topics of retries and dead letters, which a broker may put elsewhere, and delayed ones, which lie
elsewhere first, are left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import BROKER_LIVES
from specs.clauses.rows import is_copy_topic
from specs.clauses.words import at, who
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "ORD-7"
TITLE = "readers see the same"
STATEMENT = "Within a broker epoch, all readers see the same message at an offset."
PARTY = Party.BROKER
KEY = Key.QUEUE
PREMISE = (BROKER_LIVES,)
SOURCES = ("docs/sources.md#store",)
KINDS = frozenset({Kind.SEND, Kind.DELIVER, Kind.READ, Kind.ADD})
NEEDS = frozenset({Kind.DELIVER})


def wants(row: Row) -> bool:
    """Rows that name an offset and an id, and those that say when an incarnation began."""
    if row.kind is Kind.ADD:
        return True
    if row.queue_offset is None or row.message_id is None:
        return False
    if row.kind is Kind.SEND:
        return row.outcome is Outcome.OK and not row.delay_level and not is_copy_topic(row.topic)
    return row.kind is Kind.DELIVER or row.outcome is Outcome.OK


@dataclass(frozen=True, slots=True)
class TwoMessages(Finding):
    first: Row
    second: Row


class QueueJudge(Judge):
    """Remembers who first named each offset, and the ADD of each incarnation."""

    __slots__ = ("added", "first")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.first: dict[int, Row] = {}
        self.added: dict[tuple[str | None, str | None], Row] = {}

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.ADD:
            self.added[row.group, row.incarnation] = row
        elif row.kind is Kind.DELIVER and self._pulled_in_this_epoch(row):
            return self._seen(row, row.queue_offset or 0)
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.kind in (Kind.ADD, Kind.DELIVER) or self.context.broker_died_since(row.broker, row):
            return NOTHING
        return self._seen(row, row.queue_offset or 0)

    def _pulled_in_this_epoch(self, row: Row) -> bool:
        death = self.context.broker_died.get(row.broker or "")
        if death is None:
            return True
        added = self.added.get((row.group, row.incarnation))
        return added is not None and added.seq_begin > death.seq_begin

    def _seen(self, row: Row, offset: int) -> Iterable[Finding]:
        first = self.first.get(offset)
        if first is None or self.context.broker_died_since(row.broker, first):
            self.first[offset] = row
            return NOTHING
        self.opportunities += 1
        if first.message_id == row.message_id:
            return NOTHING
        return (TwoMessages(first, row, certain=self._watched(first) and self._watched(row)),)

    def _watched(self, row: Row) -> bool:
        """Is it known that what the row shows was not pulled before the history begins?"""
        whole = self.context.info.closed_world or row.kind is not Kind.DELIVER
        return whole or (row.group, row.incarnation) in self.added


judge = QueueJudge


def explain(found: TwoMessages) -> str:
    first, second = found.first, found.second
    return (
        f"offset {second.queue_offset} of {second.queue} is message {first.message_id} for {who(first)} "
        f"({first.kind}, {at(first)}) and message {second.message_id} for {who(second)} ({second.kind}, {at(second)})"
    )
