"""A message whose send was acknowledged is there whenever its queue is read to the end afterwards.

Decided by each drain: a READ row without a message spans the reading of the queue to its end and says up to which
offset that was. Every send to the queue that was acknowledged before that reading began must be among the messages read
while it lasted, this time and the next; one beyond the queue's end only when it was acknowledged longer ago than the
bound for delays, or was read before, because a broker may show a message a little later than it acknowledges it. While
a broker stands still that bound does not run; where nobody records pauses, what it alone decides is at most possible.
Where an acknowledged message should lie and another one is read, the loss shows at once. A read that failed decides
nothing of its offset. The answer to a batch names the place of its first message only; the others lie behind it, in
their order.

Acknowledgements with the codes 10 to 12 (stored, but not flushed or replicated in time) promise less and are left out,
as are delayed and half messages (they lie elsewhere first) and the topics of retries and dead letters. Where the
configuration declares that the brokers flush later (`flush` async), what was acknowledged less than an interval of
flushing before a crash of the broker, the slack of a timer, and the time that a sync may take on a busy disk
(`disk_slack_ms`; nothing in virtual time), may be gone and is left out as well; a broker that was paused flushed
nothing meanwhile, and of a death that only a new epoch tells nobody knows when it was.

What a broker removed on purpose is not lost: an offset below the minimum that it had announced by the end of the
reading (a TRIM) decides nothing where it was not read. At or above that minimum, or without a word about it, a message
that is gone is lost. So is one that was removed before it was as old as the configuration says that messages are kept
(`keep_ms`; 0 says nothing), unless a fault had filled the broker's disk or a wall clock was set.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.certainty import recorded
from specs.clauses.context import FLUSHED_LATER, Context
from specs.clauses.intervals import Intervals
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import DRAINED, NOT_REMOVED
from specs.clauses.rows import ended_before, is_copy_topic, over_us
from specs.clauses.stored import STORED_WEAKLY, is_marker, lies_at_once
from specs.clauses.words import MS, at, who
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "SND-1"
TITLE = "acknowledged is never lost"
STATEMENT = "A message whose send was acknowledged is never lost while it has to be kept."
PARTY = Party.BROKER
KEY = Key.QUEUE
PREMISE = (DRAINED, NOT_REMOVED)
SOURCES = ("docs/sources.md#store", "docs/sources.md#send")
KINDS = frozenset({Kind.SEND, Kind.READ})
NEEDS = frozenset({Kind.READ, Kind.SEND})
EXCUSED_IF = {
    Kind.CRASH: lambda config: config.flush == FLUSHED_LATER,
    Kind.FAULT: lambda config: bool(config.keep_ms),
    Kind.CLOCK_STEP: lambda config: bool(config.keep_ms),
}


def wants(row: Row) -> bool:
    """Copies are the business of other clauses."""
    return not is_copy_topic(row.topic)


@dataclass(frozen=True, slots=True)
class Lost(Finding):
    """first: of a batch, the row that names a place. read: the reading that did not find the message, or the other
    message that lies in its place."""

    sent: Row
    first: Row | None
    read: Row
    offset: int


@dataclass(frozen=True, slots=True)
class Placed:
    """An acknowledged send. first: the row of its batch that names a place, if it does not itself."""

    row: Row
    first: Row | None = None


class QueueJudge(Judge):
    """Remembers the acknowledged sends, by their places, until they are removed or lost."""

    __slots__ = (
        "batches",
        "knows_pauses",
        "patience_us",
        "read",
        "reading",
        "seen",
        "sent",
        "unread",
        "waiting",
    )

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        known = recorded(context.info)
        self.knows_pauses = known is None or Kind.PAUSE in known
        self.patience_us = self.config.delay_bound_ms * MS + context.info.clock_bound_us
        self.sent: dict[int, tuple[Placed, ...]] = {}
        self.batches: dict[int, Row] = {}  # by operation, the row that names a place
        self.waiting: dict[
            int, list[Row]
        ] = {}  # messages of batches of which no row has named a place yet
        self.reading: dict[int, Row] = {}  # readings under way, by their operation
        self.read = Intervals()  # offsets read while a reading is under way
        self.seen: dict[int, int] = {}  # when each of these offsets was last read, as seq
        self.unread = Intervals()  # offsets of which a read failed meanwhile

    def begins(self, row: Row) -> Iterable[Finding]:
        if is_marker(row):
            if not self.reading:
                self.read, self.unread = Intervals(), Intervals()
            self.reading[row.op_id] = row
        elif (
            row.kind is Kind.READ
            and row.seq_end is None
            and row.queue_offset is not None
            and self.reading
        ):
            self.unread.add(row.queue_offset)
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.SEND:
            if row.outcome is Outcome.OK and row.code not in STORED_WEAKLY and lies_at_once(row):
                self._sent(row)
            return NOTHING
        if row.queue_offset is not None:
            return self._message_read(row, row.queue_offset)
        reading = self.reading.pop(row.op_id, None)
        if reading is None or row.outcome is not Outcome.OK or row.value is None:
            return NOTHING
        return self._read_to_end(reading, row.value)

    def _sent(self, row: Row) -> None:
        if row.queue_offset is not None:
            self._remember(row.queue_offset, Placed(row))
            if row.value is not None:
                self.batches.setdefault(row.op_id, row)
                for part in self.waiting.pop(row.op_id, ()):
                    self._place(part, self.batches[row.op_id])
        elif row.value is not None and row.op_id in self.batches:
            self._place(row, self.batches[row.op_id])
        elif row.value is not None:
            self.waiting.setdefault(row.op_id, []).append(row)

    def _place(self, part: Row, first: Row) -> None:
        self._remember(
            (first.queue_offset or 0) - (first.value or 0) + (part.value or 0), Placed(part, first)
        )

    def _remember(self, offset: int, placed: Placed) -> None:
        self.sent[offset] = (*self.sent.get(offset, ()), placed)

    def _forget(self, offset: int, gone: Iterable[Placed]) -> None:
        left = tuple(each for each in self.sent[offset] if each not in gone)
        if left:
            self.sent[offset] = left
        else:
            del self.sent[offset]

    def _message_read(self, row: Row, offset: int) -> Iterable[Finding]:
        if row.outcome is not Outcome.OK:
            if self.reading:
                self.unread.add(offset)
            return NOTHING
        if self.reading:
            self.read.add(offset)
        if offset in self.sent:
            self.seen[offset] = row.seq_end or row.seq_begin
        replaced = [
            each
            for each in self.sent.get(offset, ())
            if row.message_id is not None
            and each.row.message_id != row.message_id
            and ended_before(each.row, row)
        ]
        return self._lost(offset, replaced, row) if replaced else NOTHING

    def _lost(self, offset: int, gone: list[Placed], read: Row) -> Iterable[Finding]:
        self._forget(offset, gone)
        judged = [each for each in gone if not self.context.may_be_unflushed(each.row)]
        self.opportunities += len(judged)
        return [
            Lost(each.row, each.first, read, offset, certain=self._is_sure(each.row, offset, read))
            for each in judged
        ]

    def _is_sure(self, sent: Row, offset: int, read: Row) -> bool:
        """Is it known that the broker had its time to show the message, or does that not matter?"""
        is_beyond = read.queue_offset is None and offset >= (read.value or 0)
        return self.knows_pauses or not is_beyond or self._was_shown(sent, offset)

    def _read_to_end(self, reading: Row, stop: int) -> Iterable[Finding]:
        found: list[Finding] = []
        for offset in sorted(self.sent):
            due = [each for each in self.sent[offset] if ended_before(each.row, reading)]
            if offset >= stop:
                due = [each for each in due if self._should_be_shown(each.row, offset, reading)]
            if offset in self.read:
                self.opportunities += sum(
                    not self.context.may_be_unflushed(each.row) for each in due
                )
            elif offset not in self.unread and due:
                if self.context.was_removed(reading, offset):
                    excused = [
                        each for each in due if not self.context.removed_early(each.row, offset)
                    ]
                    self._forget(offset, excused)
                    due = [each for each in due if each not in excused]
                if due:
                    found.extend(self._lost(offset, due, reading))
        return found

    def _should_be_shown(self, sent: Row, offset: int, reading: Row) -> bool:
        """Beyond the end: was it shown before, or acknowledged longer ago than a broker may take to show it?"""
        told_us, now_us = over_us(sent), reading.started_us
        ran_us = now_us - told_us - self.context.stood_us(sent.broker, told_us, now_us)
        return self._was_shown(sent, offset) or ran_us >= self.patience_us

    def _was_shown(self, sent: Row, offset: int) -> bool:
        return self.seen.get(offset, 0) > (sent.seq_end or 0)


judge = QueueJudge


def explain(found: Lost) -> str:
    sent, read = found.sent, found.read
    said = (
        f"message {sent.message_id}, sent by {who(sent)} at {at(sent)} and acknowledged at offset {found.offset} "
        f"of {sent.queue}"
    )
    if read.queue_offset is None:
        return f"{said}, was not there when the queue was read up to {read.value} at {at(read)}"
    return f"{said}, is not there: at {at(read)} message {read.message_id} was read in its place"
