"""A message whose send was acknowledged is there whenever its queue is read to the end afterwards.

Decided by each drain: a READ row without a message spans the reading of the queue to its end and says up to which
offset that was. Every send to the queue that was acknowledged before that reading began must be among the messages read
while it lasted, this time and the next, whatever another reading found; one beyond the queue's end only when it was
acknowledged longer ago than the bound for delays, or was read before, be it before its answer came, because a broker
may show a message a little later than it acknowledges it. While a broker stands still that bound does not run; where
nobody records pauses, what it alone decides is at most possible. Where an acknowledged message should lie and another
one is read, the loss shows at once. A read that failed decides nothing of its offset. The answer to a batch names the
place of its first message only; the others lie behind it, in their order.

Acknowledgements with the codes 10 to 12 (stored, but not flushed or replicated in time) promise less and are left out,
as are delayed and half messages (they lie elsewhere first) and the topics of retries and dead letters. Where the
configuration declares that the brokers flush later (`flush` async), what was acknowledged less than an interval of
flushing before a crash of the broker, the slack of a timer, and the time that a sync may take on a busy disk
(`disk_slack_ms`; nothing in virtual time), may be gone and is left out as well; a broker that was paused flushed
nothing meanwhile, and of a death that only a new epoch tells nobody knows when it was.

What a broker removed on purpose is not lost: an offset below the minimum that it had announced by the end of the
reading (a TRIM) decides nothing where it was not read, or another message was. At or above that minimum, or without a
word about it, a message that is gone is lost. So is one that was removed before it was as old as the configuration says
that messages are kept (`keep_ms`; 0 says nothing), unless a fault had filled the broker's disk or a wall clock was set.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from specs.clauses.context import FLUSHED_LATER
from specs.clauses.premises import DRAINED, NOT_REMOVED
from specs.clauses.terms import Finding, Findings, Row, Rows, at, who
from specs.facts.columns import MS, NEVER, NONE, Ints, Mask
from specs.facts.segments import by_time, chosen, composite, distinct, pairs, positions
from specs.facts.stored import STORED_COLUMNS, STORED_WEAKLY, copies, delayed, halves, placed
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


class Lost(Finding):
    """first: of a batch, the row that names a place. read: the reading that did not find the message, or the other
    message that lies in its place."""

    sent: Row
    first: Row | None
    read: Row
    offset: int


def judge(rows: Rows, findings: Findings) -> None:
    """Every reading decides about the sends acknowledged before it that are neither lost nor removed."""
    queues = _Queues(rows, findings)
    by = np.concatenate([queues.markers, queues.others()])
    for row in by[np.argsort(rows.end[by], kind="stable")].tolist():
        (queues.read_to_end if rows.offset[row] == NONE else queues.another)(row)


def _shows(rows: Rows, reads: Ints, sends: Ints) -> tuple[Mask, Mask]:
    """Does each read show the message that was sent? And does it show another one? Neither, where it has no name."""
    column = rows.table.column("message_id")
    ours, theirs = column.take(pa.array(sends)), column.take(pa.array(reads))
    same = np.asarray(pc.fill_null(pc.equal(ours, theirs), False))
    return same, ~same & np.asarray(theirs.is_valid())


class _Queues:
    """The sends, reads and markers of all queues, by queue. left: which sends are neither lost nor removed yet.

    offset: of each row, that of a batch's message counted from the one that was told, by the row told_by. known: when
    the place of a send was told.
    """

    def __init__(self, rows: Rows, findings: Findings) -> None:
        self.rows, self.findings = rows, findings
        has_offset, original = rows.offset != NONE, ~copies(rows)
        named = np.asarray(rows.table.column("message_id").is_valid())
        ok = rows.ended_as(Outcome.OK) & (rows.end < NEVER)
        sent = rows.are(Kind.SEND) & ok & ~delayed(rows) & ~halves(rows) & original
        sent &= ~np.isin(rows.number("code"), STORED_WEAKLY)
        self.offset, self.told_by = placed(rows, sent)
        self.known = np.maximum(rows.end, chosen(rows.end, self.told_by, NONE))
        read = rows.are(Kind.READ) & original
        self.sends = self._by_queue(sent & (self.offset != NONE), self.offset)
        self.reads = self._by_queue(read & ok & has_offset, rows.end)
        self.failed = self._by_queue(read & ~ok & has_offset, rows.begin)
        whole = read & ok & ~has_offset & ~named & (rows.value != NONE)
        self.markers = positions(whole)
        self.left = np.ones(len(self.sends), np.bool_)

    def _by_queue(self, wanted: Mask, then: Ints) -> Ints:
        where = positions(wanted)
        return where[by_time(self.rows.queue[where], then[where])]

    def _of(self, where: Ints, row: int) -> slice:
        """Those of the row's queue, of rows that are in the order of queues."""
        mine = self.rows.queue[row]
        return slice(*np.searchsorted(self.rows.queue[where], [mine, mine + 1]).tolist())

    def others(self) -> Ints:
        """Reads that found another message where an acknowledged one should lie."""
        rows, sends, reads = self.rows, self.sends, self.reads
        both = np.concatenate([sends, reads])
        place = composite(rows.queue[both], self.offset[both])
        lies, found = place[: len(sends)], place[len(sends) :]
        start, stop = (np.searchsorted(lies, found, side) for side in ("left", "right"))
        parts = [
            read[_shows(rows, read, send)[1] & (self.known[send] < rows.begin[read])]
            for index, at in pairs(start, stop)
            for send, read in [(sends[at], reads[index])]
        ]
        return np.unique(np.concatenate([*parts, np.zeros(0, np.int64)]))

    def another(self, read: int) -> None:
        """Another message was read where some of these should lie."""
        mine = self._of(self.sends, read)
        sends = self.sends[mine]
        gone = self.left[mine] & (self.offset[sends] == self.rows.offset[read])
        gone &= self.known[sends] < self.rows.begin[read]
        gone[gone] = _shows(self.rows, np.full(gone.sum(), read), sends[gone])[1]
        self.left[mine] &= ~gone
        self._lost(sends[gone], read)

    def read_to_end(self, marker: int) -> None:
        """A queue was read to its end: each of these is among the messages that were read, or it is gone."""
        rows, mine = self.rows, self._of(self.sends, marker)
        context = rows.context_of(marker)
        sends, begin, now = self.sends[mine], rows.begin[marker], int(rows.end[marker])
        due = self.left[mine] & (rows.end[sends] < begin) & (self.known[sends] < now)
        broker, until_us = rows.name_of("broker", marker), int(rows.started[marker])
        ran_us = context.ran_us(broker, rows.ended[sends], until_us, now)
        young = ran_us < context.info.config.delay_bound_ms * MS + context.info.clock_bound_us
        young &= due & (self.offset[sends] >= rows.value[marker])
        due[young] = self._was_shown(sends[young], marker)
        here = due & np.isin(self.offset[sends], self._read_in(self.reads, rows.end, marker))
        failed_at = np.where(rows.end < NEVER, rows.end, rows.begin)
        failed = np.isin(self.offset[sends], self._read_in(self.failed, failed_at, marker))
        gone = due & ~here & ~failed
        self.left[mine] &= ~gone
        here[here] = ~self._may_be_unflushed(sends[here], now)
        self.findings.at_stake(sends[here])
        self._lost(sends[gone], marker)

    def _read_in(self, reads: Ints, ended: Ints, marker: int) -> Ints:
        """The offsets that were read while the reading lasted."""
        rows, mine = self.rows, reads[self._of(reads, marker)]
        during = (ended[mine] > rows.begin[marker]) & (rows.begin[mine] < rows.end[marker])
        return distinct(rows.offset[mine[during]])

    def _was_shown(self, sends: Ints, by: int) -> Mask:
        """Had somebody read each message before, also before its send was answered?"""
        rows, reads = self.rows, self.reads[self._of(self.reads, by)]
        reads = reads[rows.end[reads] < rows.begin[by]]
        found = np.zeros(len(sends), np.bool_)
        for index, send in enumerate(sends.tolist()):
            there = reads[rows.offset[reads] == self.offset[send]]
            there = there[rows.end[there] > rows.begin[send]]
            found[index] = np.any(_shows(rows, there, np.full(len(there), send))[0])
        return found

    def _may_be_unflushed(self, sends: Ints, now: int) -> Mask:
        """May a crash have taken what was acknowledged?"""
        rows, found = self.rows, np.zeros(len(sends), np.bool_)
        broker = rows.name_of("broker", int(sends[0])) if len(sends) else ""
        crashes = rows.context_of(int(sends[0])).unflushed.get(broker, ()) if broker else ()
        for seq, safe_us in crashes:
            if seq <= now:
                found |= (rows.begin[sends] < seq) & (rows.ended[sends] > safe_us)
        return found

    def _lost(self, sends: Ints, by: int) -> None:
        """These are gone, as this row tells: those that were neither removed in time nor may be unflushed are lost."""
        rows, now, context = self.rows, int(self.rows.end[by]), self.rows.context_of(by)
        queue, lost = rows.queue_of(by), ~self._may_be_unflushed(sends, now)
        for index in positions(self.offset[sends] < context.kept_from(queue, now)).tolist():
            sent_us, offset = int(rows.started[sends[index]]), int(self.offset[sends[index]])
            lost[index] &= context.removed_early(sent_us, queue, offset, now)
        sends = sends[lost]
        self.findings.at_stake(sends)
        sure = (self.offset[sends] < rows.value[by]) | (rows.offset[by] != NONE)
        sure |= context.tells(Kind.PAUSE)
        sure[~sure] = self._was_shown(sends[~sure], by)
        roles = {"sent": sends, "first": self.told_by[sends], "read": np.full(len(sends), by)}
        also = {"offset": self.offset[sends]}
        self.findings.broken(Lost, also, certain=sure, **roles)


def explain(found: Lost) -> str:
    sent, read = found.sent, found.read
    said = (
        f"message {sent.message_id}, sent by {who(sent)} at {at(sent)} and acknowledged at offset {found.offset} "
        f"of {sent.queue}"
    )
    if read.queue_offset is None:
        return f"{said}, was not there when the queue was read up to {read.value} at {at(read)}"
    return f"{said}, is not there: at {at(read)} message {read.message_id} was read in its place"
