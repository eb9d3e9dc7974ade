"""A message whose send was acknowledged is there when its queue is read to the end afterwards.

Decided by a drain: a READ row without a message spans the reading of the queue to its end and says up to which
offset that was. Every send to the queue that was acknowledged before that reading began must be among the messages
read while it lasted; one beyond the queue's end only when it was acknowledged longer ago than the bound for delays,
because a broker may show a message a little later than it acknowledges it. Where an acknowledged message should
lie and another one is read, the loss shows at once. Acknowledgements with the codes 10 to 12 (stored, but not flushed
or replicated in time) promise less and are left out, as are delayed messages (they lie elsewhere first) and the
topics of retries and dead letters. Where the configuration declares that the brokers flush later (`flush` async), what
was acknowledged less than an interval of flushing before a crash of the broker, and the slack of a timer, may be gone
and is left out as well; a broker that was paused flushed nothing meanwhile. What a broker removed on purpose is not
lost: an offset below the minimum that it had announced by the end of the reading (a TRIM) decides nothing where it was
not read. At or above that minimum, or without a word about it, a message that is gone is lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.base import (
    DRAINED,
    MS,
    NOT_REMOVED,
    NOTHING,
    Context,
    Finding,
    Intervals,
    Judge,
    at,
    ended_before,
    is_copy_topic,
    who,
)
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "SND-1"
TITLE = "acknowledged is never lost"
STATEMENT = "A message whose send was acknowledged is never lost."
PARTY = Party.BROKER
KEY = Key.QUEUE
PREMISE = (DRAINED, NOT_REMOVED)
SOURCES = ("docs/sources.md#send", "docs/sources.md#store")
KINDS = frozenset({Kind.SEND, Kind.READ})
NEEDS = frozenset({Kind.READ, Kind.SEND})

STORED_WEAKLY = frozenset({10, 11, 12})
"""FLUSH_DISK_TIMEOUT, SLAVE_NOT_AVAILABLE, FLUSH_SLAVE_TIMEOUT: stored, but not as safely as was asked for."""


def wants(row: Row) -> bool:
    """Copies are the business of other clauses."""
    return not is_copy_topic(row.topic)


@dataclass(frozen=True, slots=True)
class Lost(Finding):
    """read: the reading that did not find it, or the other message that lies in its place."""

    sent: Row
    read: Row


class QueueJudge(Judge):
    """Remembers the acknowledged sends that no reading has decided yet."""

    __slots__ = ("delay_bound_us", "more", "read", "reading", "sent")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.delay_bound_us = self.config.delay_bound_ms * MS
        self.sent: dict[int, Row] = {}
        self.more: dict[int, list[Row]] = {}  # further sends that were acknowledged with the same offset
        self.reading: dict[int, Row] = {}  # readings under way, by their operation
        self.read = Intervals()  # offsets read while a reading is under way

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.READ and row.queue_offset is None and row.message_id is None:
            if not self.reading:
                self.read = Intervals()
            self.reading[row.op_id] = row
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.SEND:
            if row.outcome is not Outcome.OK or row.queue_offset is None or row.code in STORED_WEAKLY:
                return NOTHING
            if not row.delay_level:  # a delayed message lies in another queue first
                if row.queue_offset in self.sent:
                    self.more.setdefault(row.queue_offset, []).append(row)
                else:
                    self.sent[row.queue_offset] = row
            return NOTHING
        if row.queue_offset is not None:
            return self._message_read(row, row.queue_offset) if row.outcome is Outcome.OK else NOTHING
        reading = self.reading.pop(row.op_id, None)
        if reading is None or row.outcome is not Outcome.OK or row.value is None:
            return NOTHING
        return self._read_to_end(reading, row.value)

    def _sends(self, offset: int) -> list[Row]:
        first = self.sent.get(offset)
        return [] if first is None else [first, *self.more.get(offset, ())]

    def _forget(self, offset: int, rows: Iterable[Row]) -> None:
        gone = {row.seq_begin for row in rows}
        left = [row for row in self._sends(offset) if row.seq_begin not in gone]
        self.more.pop(offset, None)
        self.sent.pop(offset, None)
        if left:
            self.sent[offset] = left[0]
            if left[1:]:
                self.more[offset] = left[1:]

    def _safe(self, rows: list[Row]) -> list[Row]:
        return [row for row in rows if not self.context.may_be_unflushed(row)]

    def _message_read(self, row: Row, offset: int) -> Iterable[Finding]:
        found: list[Finding] = []
        if offset in self.sent:
            replaced = [
                sent
                for sent in self._sends(offset)
                if row.message_id is not None and sent.message_id != row.message_id and ended_before(sent, row)
            ]
            if replaced:
                judged = self._safe(replaced)
                self.opportunities += len(judged)
                found.extend(Lost(sent, row) for sent in judged)
                self._forget(offset, replaced)
        if self.reading:
            self.read.add(offset)
        return found

    def _read_to_end(self, reading: Row, stop: int) -> Iterable[Finding]:
        found: list[Finding] = []
        for offset in sorted(self.sent):
            rows = [row for row in self._sends(offset) if ended_before(row, reading)]
            if offset >= stop:
                rows = [row for row in rows if (row.ended_us or 0) + self.delay_bound_us <= reading.started_us]
            if not rows:
                continue
            if offset in self.read or not self.context.was_removed(reading, offset):
                judged = self._safe(rows)
                self.opportunities += len(judged)
                if offset not in self.read:
                    found.extend(Lost(row, reading) for row in judged)
            self._forget(offset, rows)
        return found


judge = QueueJudge


def explain(found: Lost) -> str:
    sent, read = found.sent, found.read
    said = (
        f"message {sent.message_id}, sent by {who(sent)} at {at(sent)} and acknowledged at offset {sent.queue_offset} "
        f"of {sent.queue}"
    )
    if read.queue_offset is None:
        return f"{said}, was not there when the queue was read up to {read.value} at {at(read)}"
    return f"{said}, is not there: at {at(read)} message {read.message_id} was read in its place"
