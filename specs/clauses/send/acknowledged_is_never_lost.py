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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from specs.clauses.context import FLUSHED_LATER
from specs.clauses.judging import Finding
from specs.clauses.premises import DRAINED, NOT_REMOVED
from specs.clauses.words import at, who
from specs.facts.findings import Findings
from specs.facts.rows import Rows
from specs.facts.segments import MS, NEVER, NO_TEXT, NONE, NOWHERE, Ints, Mask, by_time, distinct
from specs.facts.stored import STORED_COLUMNS, STORED_WEAKLY, copies, delayed, halves, placed
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
COLUMNS = (*STORED_COLUMNS, "started_us", "ended_us")


@dataclass(frozen=True, slots=True)
class Lost(Finding):
    """first: of a batch, the row that names a place. read: the reading that did not find the message, or the other
    message that lies in its place."""

    sent: Row
    first: Row | None
    read: Row
    offset: int


class Queues:
    """The sends, reads and markers of all queues, by queue.

    offset: of each row, that of a batch's message counted from the one that was told, by the row told_by.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        original = ~copies(rows)
        has_offset = rows.offset != NONE
        named = np.asarray(rows.table.column("message_id").is_valid())
        ok = rows.ended_as(Outcome.OK) & (rows.end < NEVER)
        sent = rows.are(Kind.SEND) & ok & ~delayed(rows) & ~halves(rows) & original
        sent &= ~np.isin(rows.number("code"), STORED_WEAKLY)
        self.offset, self.told_by = placed(rows, sent)
        self.acknowledged = sent & (self.offset != NONE)
        read = rows.are(Kind.READ) & original
        self.sends = self._by_queue(np.flatnonzero(self.acknowledged), self.offset)
        self.reads = self._by_queue(np.flatnonzero(read & ok & has_offset), rows.end)
        self.failed = np.flatnonzero(read & ~ok & has_offset)
        self.markers = self._by_queue(np.flatnonzero(read & ~has_offset & ~named), rows.begin)
        self.loose = self._by_queue(np.flatnonzero(read & ~has_offset & named), rows.begin)
        self.uneven = self._uneven()

    def _by_queue(self, where: Ints, then: Ints) -> Ints:
        return where[by_time(self.rows.queue[where], then[where])]

    def of(self, where: Ints, queue: int) -> Ints:
        low, high = np.searchsorted(self.rows.queue[where], [queue, queue + 1])
        return where[low:high]

    def _uneven(self) -> set[int]:
        """Queues that have to be gone through row by row."""
        rows, sends, reads, markers, offset = (
            self.rows,
            self.sends,
            self.reads,
            self.markers,
            self.offset,
        )
        uneven: set[int] = set(rows.queue[self.loose].tolist()) | set(
            rows.queue[self.failed].tolist()
        )
        twice = (rows.queue[sends][1:] == rows.queue[sends][:-1]) & (
            offset[sends][1:] == offset[sends][:-1]
        )
        uneven.update(rows.queue[sends][1:][twice].tolist())
        overlap = (rows.queue[markers][1:] == rows.queue[markers][:-1]) & (
            np.maximum(rows.end[markers], rows.begin[markers])[:-1] >= rows.begin[markers][1:]
        )
        uneven.update(rows.queue[markers][1:][overlap].tolist())
        parts = sends[self.told_by[sends] != NOWHERE]
        uneven.update(rows.queue[parts[rows.end[self.told_by[parts]] > rows.end[parts]]].tolist())
        place, matched = match(rows, sends, reads, offset)
        differ = differs(rows, "message_id", sends[place[matched]], reads[matched])
        uneven.update(rows.queue[reads[matched][differ]].tolist())
        queues, first = np.unique(rows.queue[sends], return_index=True)
        for queue, place in zip(queues.tolist(), sends[first].tolist(), strict=True):
            context = rows.context_of(place)
            if unflushed(rows, place) or (
                context.info.config.keep_ms and context.removed_us.get(rows.queue_of(place))
            ):
                uneven.add(queue)
        return uneven


def unflushed(rows: Rows, place: int) -> Sequence[tuple[int, int]]:
    """The crashes of the row's broker that may have lost what was acknowledged: (seq, until when all was safe)."""
    broker = int(rows.text("broker")[place])
    return (
        ()
        if broker == NO_TEXT
        else rows.context_of(place).unflushed.get(rows.words("broker")[broker], ())
    )


def match(rows: Rows, sends: Ints, others: Ints, offsets: Ints | None = None) -> tuple[Ints, Mask]:
    """For every other row the place in `sends` (sorted by queue and offset) of one with its offset, and if any.

    offsets: those of the sends, of all rows, where they are not what their column says.
    """
    if not len(sends):
        return np.zeros(len(others), np.int64), np.zeros(len(others), np.bool_)
    mine = (rows.offset if offsets is None else offsets)[sends]
    base = int(mine.min())
    width = int(mine.max()) - base + 2
    keys = rows.queue[sends] * width + (mine - base)
    offset = rows.offset[others]
    within = (offset >= base) & (offset < base + width)
    wanted = rows.queue[others] * width + np.where(within, offset - base, 0)
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return place, within & (keys[place] == wanted)


def differs(rows: Rows, name: str, left: Ints, right: Ints) -> Mask:
    """Do both rows have a text, and another one? One at `left` may be missing and then differs."""
    column = rows.table.column(name)
    ours, theirs = column.take(pa.array(left)), column.take(pa.array(right))
    different = pc.fill_null(pc.not_equal(ours, theirs), True)
    return np.asarray(pc.and_(different, theirs.is_valid()))


def judge(rows: Rows, findings: Findings) -> None:
    """Every reading decides about the sends acknowledged before it that are neither lost nor removed."""
    queues = Queues(rows)
    present = np.unique(rows.queue[queues.markers]).tolist()
    for queue in sorted(set(present) | queues.uneven):
        if queue in queues.uneven:
            RowByRow(queues, findings, queue).run()
        else:
            _readings(queues, findings, queue)


def _readings(queues: Queues, findings: Findings, queue: int) -> None:
    rows, offset = queues.rows, queues.offset
    sends, reads = queues.of(queues.sends, queue), queues.of(queues.reads, queue)
    read_end, ok = rows.end[reads], rows.ended_as(Outcome.OK)
    for marker in queues.of(queues.markers, queue).tolist():
        stop, end = int(rows.value[marker]), int(rows.end[marker])
        if end >= NEVER or not ok[marker] or stop == NONE:
            continue
        low, high = np.searchsorted(read_end, [rows.begin[marker], end])
        # Of equal times the end of a read comes before that of its marker, and after the marker's begin.
        found = distinct(rows.offset[reads[low:high]])
        due = rows.end[sends] < rows.begin[marker]
        early = (
            due
            & (offset[sends] >= stop)
            & (since_told_us(rows, sends, marker) < patience_us(rows, marker))
        )
        for place in np.flatnonzero(early).tolist():  # those at the end that nobody has read yet
            shown = read_end[rows.offset[reads] == offset[sends[place]]]
            due[place] = np.any((shown > rows.end[sends[place]]) & (shown < end))
        here = np.isin(offset[sends], found)
        kept = offset[sends] >= kept_from(rows, marker)
        lost = sends[due & ~here & kept]
        findings.at_stake(sends[due & (here | kept)])
        for row in lost.tolist():
            sure = bool(offset[row] < stop) or rows.context_of(row).tells(Kind.PAUSE)
            if not sure:
                shown = read_end[rows.offset[reads] == offset[row]]
                sure = bool(np.any((shown > rows.end[row]) & (shown < end)))
            roles = {"sent": row, "first": int(queues.told_by[row]), "read": marker}
            findings.shown(Lost, roles, {"offset": int(offset[row])}, certain=sure)
        sends = sends[~due | here]


def patience_us(rows: Rows, marker: int) -> int:
    """So long ago at least a message beyond the end was acknowledged, if it is missed."""
    info = rows.context_of(marker).info
    return info.config.delay_bound_ms * MS + info.clock_bound_us


def since_told_us(rows: Rows, sends: Ints, marker: int) -> Ints:
    """How long the broker has run between the answers to these sends and the reading."""
    told, now = rows.ended[sends], int(rows.started[marker])
    ran = now - told
    for since, until in rows.context_of(marker).stands(
        rows.name_of("broker", marker), int(rows.end[marker])
    ):
        ran -= np.maximum(np.minimum(until, now) - np.maximum(since, told), 0)
    return ran


def kept_from(rows: Rows, marker: int) -> int:
    """The minimum that the broker had announced for the queue by the end of the reading."""
    return rows.context_of(marker).kept_from(rows.queue_of(marker), int(rows.end[marker]))


class RowByRow:
    """One queue that needs a closer look."""

    def __init__(self, queues: Queues, findings: Findings, queue: int) -> None:
        self.queues = queues
        self.rows = rows = queues.rows
        self.findings = findings
        where = np.flatnonzero((rows.queue == queue) & rows.are(Kind.SEND, Kind.READ))
        ended = where[rows.end[where] < NEVER]
        row = np.concatenate([where, ended])
        known = rows.end[ended]
        told_by = queues.told_by[ended]
        # A batch's place is known when the row that tells it has ended.
        known = np.where(
            told_by != NOWHERE, np.maximum(known, rows.end[np.maximum(told_by, 0)]), known
        )
        time = np.concatenate([rows.begin[where], known])
        phase = np.concatenate([np.zeros(len(where), np.int8), np.ones(len(ended), np.int8)])
        order = np.lexsort((phase, time))
        self.events: Iterator[tuple[int, int]] = zip(
            phase[order].tolist(), row[order].tolist(), strict=True
        )
        column = rows.table.column("message_id").take(pa.array(where))
        self.ids: dict[int, str | None] = dict(zip(where.tolist(), column.to_pylist(), strict=True))
        self.is_send = rows.are(Kind.SEND)
        self.is_ok = rows.ended_as(Outcome.OK)
        self.sent: dict[int, list[int]] = {}
        self.reading: dict[int, int] = {}
        self.read: set[int] = set()
        self.unread: set[int] = set()
        self.seen: dict[int, int] = {}

    def run(self) -> None:
        rows, send, queues = self.rows, self.is_send, self.queues
        for phase, row in self.events:
            if phase == 0:
                if not send[row] and rows.offset[row] == NONE and self.ids[row] is None:
                    if not self.reading:
                        self.read.clear()
                        self.unread.clear()
                    self.reading[int(rows.number("op_id")[row])] = row
                elif (
                    not send[row]
                    and rows.end[row] >= NEVER
                    and rows.offset[row] != NONE
                    and self.reading
                ):
                    self.unread.add(int(rows.offset[row]))
            elif send[row]:
                if queues.acknowledged[row]:
                    self.sent.setdefault(int(queues.offset[row]), []).append(row)
            elif rows.offset[row] != NONE:
                self._message_read(row, int(rows.offset[row]))
            else:
                marker = self.reading.pop(int(rows.number("op_id")[row]), None)
                if marker is not None and self.is_ok[row] and rows.value[row] != NONE:
                    self._read_to_end(marker, int(rows.value[row]))

    def _forget(self, offset: int, gone: Sequence[int]) -> None:
        left = [row for row in self.sent[offset] if row not in gone]
        if left:
            self.sent[offset] = left
        else:
            del self.sent[offset]

    def _lost(self, offset: int, gone: list[int], by: int, now: int) -> None:
        """now: the seq at which."""
        self._forget(offset, gone)
        safe = [row for row in gone if not self._may_be_unflushed(row, now)]
        self.findings.at_stake(np.asarray(safe, np.int64))
        rows, shown = self.rows, self.seen.get(offset, 0)
        there = rows.offset[by] != NONE or offset < rows.value[by]
        for row in safe:
            sure = bool(there or shown > rows.end[row]) or rows.context_of(row).tells(Kind.PAUSE)
            roles = {"sent": row, "first": int(self.queues.told_by[row]), "read": by}
            self.findings.shown(Lost, roles, {"offset": offset}, certain=sure)

    def _may_be_unflushed(self, row: int, now: int) -> bool:
        begin, ended = self.rows.begin[row], self.rows.ended[row]
        return any(
            begin < seq <= now and ended > safe_us for seq, safe_us in unflushed(self.rows, row)
        )

    def _message_read(self, read: int, offset: int) -> None:
        rows = self.rows
        if not self.is_ok[read]:
            if self.reading:
                self.unread.add(offset)
            return
        if self.reading:
            self.read.add(offset)
        if offset in self.sent:
            self.seen[offset] = int(rows.end[read])
        begin, sent = rows.begin[read], self.sent.get(offset, ())
        replaced = [
            row for row in sent if self.ids[row] != self.ids[read] and rows.end[row] < begin
        ]
        if replaced and self.ids[read] is not None:
            self._lost(offset, replaced, read, int(rows.end[read]))

    def _read_to_end(self, marker: int, stop: int) -> None:
        rows, now = self.rows, int(self.rows.end[marker])
        patience = patience_us(rows, marker)
        for offset in sorted(self.sent):
            due = [row for row in self.sent[offset] if rows.end[row] < rows.begin[marker]]
            if offset >= stop:
                shown = self.seen.get(offset, 0)
                due = [
                    row
                    for row in due
                    if shown > rows.end[row]
                    or since_told_us(rows, np.asarray([row]), marker)[0] >= patience
                ]
            if offset in self.read:
                safe = [row for row in due if not self._may_be_unflushed(row, now)]
                self.findings.at_stake(np.asarray(safe, np.int64))
                continue
            if not due or offset in self.unread:
                continue
            if offset < kept_from(rows, marker):
                context, queue = rows.context_of(marker), rows.queue_of(marker)
                early = [
                    row
                    for row in due
                    if context.removed_early(int(rows.started[row]), queue, offset, now)
                ]
                self._forget(offset, [row for row in due if row not in early])
                due = early
            if due:
                self._lost(offset, due, marker, now)


def explain(found: Lost) -> str:
    sent, read = found.sent, found.read
    said = (
        f"message {sent.message_id}, sent by {who(sent)} at {at(sent)} and acknowledged at offset {found.offset} "
        f"of {sent.queue}"
    )
    if read.queue_offset is None:
        return f"{said}, was not there when the queue was read up to {read.value} at {at(read)}"
    return f"{said}, is not there: at {at(read)} message {read.message_id} was read in its place"
