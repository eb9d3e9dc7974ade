"""SND-1 over columns: sends and reads are matched by offset, all at once for each reading of a queue.

A queue where a read shows another message than was acknowledged at that offset, where one offset was acknowledged
twice, where readings overlap, or whose broker crashed with messages that it had yet to flush, is gone through row by
row; every other needs one comparison of ranges a reading.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_checkers.rows import MS, NEVER, NO_TEXT, NONE, Findings, Rows
from spark_checkers.segments import Ints, Mask
from spark_checkers.twin import Twin
from specs.vocabulary import DLQ_PREFIX, RETRY_PREFIX, Kind, Outcome

STORED_WEAKLY = (10, 11, 12)


class Queues:
    """The sends, reads and markers of all queues, by queue."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        original = ~(rows.starts_with("topic", RETRY_PREFIX) | rows.starts_with("topic", DLQ_PREFIX))
        has_offset = rows.offset != NONE
        named = np.asarray(rows.table.column("message_id").is_valid())
        ok = rows.ended_as(Outcome.OK)
        delay = rows.number("delay_level")
        sent = rows.are(Kind.SEND) & ok & has_offset & (rows.end < NEVER) & ((delay == 0) | (delay == NONE))
        sent &= ~np.isin(rows.number("code"), STORED_WEAKLY) & original
        read = rows.are(Kind.READ) & original
        self.sends = self._by_queue(np.flatnonzero(sent), rows.offset)
        self.reads = self._by_queue(np.flatnonzero(read & ok & has_offset & (rows.end < NEVER)), rows.end)
        self.markers = self._by_queue(np.flatnonzero(read & ~has_offset & ~named), rows.begin)
        self.loose = self._by_queue(np.flatnonzero(read & ~has_offset & named), rows.begin)
        self.uneven = self._uneven()

    def _by_queue(self, where: Ints, then: Ints) -> Ints:
        return where[np.lexsort((then[where], self.rows.queue[where]))]

    def of(self, where: Ints, queue: int) -> Ints:
        low, high = np.searchsorted(self.rows.queue[where], [queue, queue + 1])
        return where[low:high]

    def _uneven(self) -> set[int]:
        """Queues that have to be gone through row by row."""
        rows, sends, reads, markers = self.rows, self.sends, self.reads, self.markers
        uneven: set[int] = set(rows.queue[self.loose].tolist())
        twice = (rows.queue[sends][1:] == rows.queue[sends][:-1]) & (rows.offset[sends][1:] == rows.offset[sends][:-1])
        uneven.update(rows.queue[sends][1:][twice].tolist())
        overlap = (rows.queue[markers][1:] == rows.queue[markers][:-1]) & (
            np.maximum(rows.end[markers], rows.begin[markers])[:-1] >= rows.begin[markers][1:]
        )
        uneven.update(rows.queue[markers][1:][overlap].tolist())
        place, matched = match(rows, sends, reads)
        differ = differs(rows, "message_id", sends[place[matched]], reads[matched])
        uneven.update(rows.queue[reads[matched][differ]].tolist())
        queues, first = np.unique(rows.queue[sends], return_index=True)
        for queue, place in zip(queues.tolist(), sends[first].tolist(), strict=True):
            if unflushed(rows, place):
                uneven.add(queue)
        return uneven


def unflushed(rows: Rows, place: int) -> Sequence[tuple[int, int]]:
    """The crashes of the row's broker that may have lost what was acknowledged: (seq, until when all was safe)."""
    broker = int(rows.text("broker")[place])
    return () if broker == NO_TEXT else rows.context_of(place).unflushed.get(rows.words("broker")[broker], ())


def match(rows: Rows, sends: Ints, others: Ints) -> tuple[Ints, Mask]:
    """For every other row the place in `sends` (sorted by queue and offset) of one with its offset, and if any."""
    if not len(sends):
        return np.zeros(len(others), np.int64), np.zeros(len(others), np.bool_)
    base = int(rows.offset[sends].min())
    width = int(rows.offset[sends].max()) - base + 2
    keys = rows.queue[sends] * width + (rows.offset[sends] - base)
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


def kernel(rows: Rows, findings: Findings) -> None:
    """Every reading decides about the sends acknowledged before it that none has decided about."""
    queues = Queues(rows)
    present = np.unique(rows.queue[queues.markers]).tolist()
    for queue in sorted(set(present) | queues.uneven):
        sends, reads = queues.of(queues.sends, queue), queues.of(queues.reads, queue)
        if queue in queues.uneven:
            RowByRow(rows, findings, queue).run()
            continue
        _readings(rows, findings, sends, reads, queues.of(queues.markers, queue))


def _readings(rows: Rows, findings: Findings, sends: Ints, reads: Ints, markers: Ints) -> None:
    read_end, ok = rows.end[reads], rows.ended_as(Outcome.OK)
    for marker in markers.tolist():
        stop, end = int(rows.value[marker]), int(rows.end[marker])
        if end >= NEVER or not ok[marker] or stop == NONE:
            continue
        low, high = np.searchsorted(read_end, [rows.begin[marker], end])
        # Of equal times the end of a read comes before that of its marker, and after the marker's begin.
        found = np.unique(rows.offset[reads[low:high]])
        bound = int(rows.config("delay_bound_ms", np.asarray([marker]))[0]) * MS
        due = rows.end[sends] < rows.begin[marker]
        due &= (rows.offset[sends] < stop) | (rows.ended[sends] + bound <= rows.started[marker])
        judged, here = sends[due], np.isin(rows.offset[sends[due]], found, assume_unique=False)
        kept = here | (rows.offset[judged] >= kept_from(rows, marker))
        findings.at_stake(judged[kept])
        lost = judged[kept & ~here]
        findings.violated(lost, np.full(len(lost), marker, np.int64))
        sends = sends[~due]


def kept_from(rows: Rows, marker: int) -> int:
    """The minimum that the broker had announced for the queue by the end of the reading."""
    return rows.context_of(marker).kept_from(rows.queue_of(marker), int(rows.end[marker]))


class RowByRow:
    """One queue that needs a closer look."""

    def __init__(self, rows: Rows, findings: Findings, queue: int) -> None:
        self.rows = rows
        self.findings = findings
        where = np.flatnonzero((rows.queue == queue) & rows.are(Kind.SEND, Kind.READ))
        ended = where[rows.end[where] < NEVER]
        row = np.concatenate([where, ended])
        time = np.concatenate([rows.begin[where], rows.end[ended]])
        phase = np.concatenate([np.zeros(len(where), np.int8), np.ones(len(ended), np.int8)])
        order = np.lexsort((phase, time))
        self.events: Iterator[tuple[int, int]] = zip(phase[order].tolist(), row[order].tolist(), strict=True)
        column = rows.table.column("message_id").take(pa.array(where))
        self.ids: dict[int, str | None] = dict(zip(where.tolist(), column.to_pylist(), strict=True))
        self.is_send = rows.are(Kind.SEND)
        self.is_ok = rows.ended_as(Outcome.OK)
        self.sent: dict[int, list[int]] = {}
        self.reading: dict[int, int] = {}
        self.read: set[int] = set()

    def run(self) -> None:
        rows, send = self.rows, self.is_send
        for phase, row in self.events:
            if phase == 0:
                if not send[row] and rows.offset[row] == NONE and self.ids[row] is None:
                    if not self.reading:
                        self.read.clear()
                    self.reading[int(rows.number("op_id")[row])] = row
            elif send[row]:
                self._sent(row)
            elif rows.offset[row] != NONE:
                if self.is_ok[row]:
                    self._message_read(row, int(rows.offset[row]))
            else:
                marker = self.reading.pop(int(rows.number("op_id")[row]), None)
                if marker is not None and self.is_ok[row] and rows.value[row] != NONE:
                    self._read_to_end(marker, int(rows.value[row]))

    def _sent(self, row: int) -> None:
        rows = self.rows
        stored = self.is_ok[row] and rows.offset[row] != NONE
        if stored and rows.number("code")[row] not in STORED_WEAKLY and rows.number("delay_level")[row] in (0, NONE):
            self.sent.setdefault(int(rows.offset[row]), []).append(row)

    def _judged(self, offset: int, judged: list[int], by: int | None, now: int, *, excused: bool = False) -> None:
        """These sends are decided; they are lost where `by` is given, unless the broker removed them on purpose.

        now: the seq at which.
        """
        safe = [] if excused else [row for row in judged if not self._may_be_unflushed(row, now)]
        self.findings.at_stake(np.asarray(safe, np.int64))
        if by is not None:
            for row in safe:
                self.findings.violation([row, by])
        left = [row for row in self.sent[offset] if row not in judged]
        if left:
            self.sent[offset] = left
        else:
            del self.sent[offset]

    def _may_be_unflushed(self, row: int, now: int) -> bool:
        begin, ended = self.rows.begin[row], self.rows.ended[row]
        return any(begin < seq <= now and ended > safe_us for seq, safe_us in unflushed(self.rows, row))

    def _message_read(self, read: int, offset: int) -> None:
        rows = self.rows
        if offset in self.sent and self.ids[read] is not None:
            begin = rows.begin[read]
            replaced = [row for row in self.sent[offset] if self.ids[row] != self.ids[read] and rows.end[row] < begin]
            if replaced:
                self._judged(offset, replaced, read, int(rows.end[read]))
        if self.reading:
            self.read.add(offset)

    def _read_to_end(self, marker: int, stop: int) -> None:
        rows = self.rows
        bound = rows.config_of(marker).delay_bound_ms * MS
        for offset in sorted(self.sent):
            due = [row for row in self.sent[offset] if rows.end[row] < rows.begin[marker]]
            if offset >= stop:
                due = [row for row in due if rows.ended[row] + bound <= rows.started[marker]]
            if due:
                excused = offset not in self.read and offset < kept_from(rows, marker)
                by = None if offset in self.read else marker
                self._judged(offset, due, by, int(rows.end[marker]), excused=excused)


TWIN = Twin(
    "SND-1",
    ("op_id", "message_id", "queue_offset", "outcome", "code", "delay_level", "started_us", "ended_us", "value"),
    kernel,
)
find = TWIN.find
