"""A send that was acknowledged before another began has the smaller offset, if both lie in one queue.

Whoever sent them. Sends that overlap may lie either way round. Compared with the highest offset acknowledged before the
send began; a crash of the broker since may have lost that one, and its offset may be given again. Of a send whose own
answer does not tell its place (one that was not answered, the later messages of a batch) a reader shows it: where the
message is read in the same queue, unless another attempt may have put it there. A further try of a message began with
the first one: that may have put it there, and a log that takes each message once answers all of them with that place.
So it is compared with what was acknowledged before the first try began, where that is known and told no place. In a
history that begins late there may be such a try of any message whose place a reader shows. Left out
are delayed messages (they lie elsewhere first), half messages, and sends to the topics of retries and dead letters (a
broker may put them elsewhere).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import BROKER_LIVES
from specs.clauses.rows import ended_before, is_copy_topic
from specs.clauses.words import at, who
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "ORD-9"
TITLE = "acknowledged sends ascend"
STATEMENT = (
    "Within a broker epoch, a send acknowledged before another began has the smaller offset if both land in one queue, "
    "whoever sent them."
)
PARTY = Party.BROKER
KEY = Key.QUEUE
PREMISE = (BROKER_LIVES,)
SOURCES = ("docs/sources.md#store", "docs/sources.md#send")
KINDS = frozenset({Kind.SEND, Kind.READ})
NEEDS = frozenset({Kind.SEND})
WATCHED = 64
"""Of the sends that were acknowledged without a place, so many are compared with each later one that tells its own."""


def wants(row: Row) -> bool:
    """Sends to this queue that lie where they were sent to, and what was read of it."""
    if is_copy_topic(row.topic):
        return False
    if row.kind is Kind.READ:
        return (
            row.queue_offset is not None
            and row.message_id is not None
            and row.outcome is Outcome.OK
        )
    if row.delay_level or (row.detail or "").split(",")[0] == "half":
        return False
    return row.outcome in (Outcome.OK, Outcome.UNKNOWN)


def is_further(row: Row) -> bool:
    """Is the send another try of its message?"""
    return (row.attempt or 1) > 1


@dataclass(frozen=True, slots=True)
class Overtook(Finding):
    """reads: that show the place of a send whose answer does not. offsets: of the earlier and the later one. first: the
    later one's first try, where this is a further one."""

    earlier: Row
    later: Row
    reads: tuple[Row, ...]
    offsets: tuple[int, int]
    first: Row | None = None


class _Unplaced:
    """A send whose place its answer does not tell. before: the highest offset acknowledged before it began; after: the
    lowest of the sends that began after it was acknowledged."""

    __slots__ = ("after", "before", "read", "row")

    def __init__(self, row: Row, before: Row | None) -> None:
        self.row = row
        self.before = before
        self.after: Row | None = None
        self.read: Row | None = None


class QueueJudge(Judge):
    """Remembers the highest offset acknowledged, for each send under way what that was when it began, and the sends
    of which only a reader can tell where they lie."""

    __slots__ = ("before", "highest", "known", "tried", "twice", "unplaced", "watched")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.highest: Row | None = None
        self.before: dict[
            int, tuple[Row, Row | None]
        ] = {}  # and the first try of what is tried again
        self.unplaced: dict[str, _Unplaced] = {}  # by message
        # Of an unplaced message: its first try, and the highest as that began.
        self.tried: dict[str, tuple[Row, Row | None]] = {}
        self.twice: set[str] = set()  # messages of which several attempts may lie here
        self.watched: deque[_Unplaced] = deque(
            maxlen=WATCHED
        )  # of the unplaced: acknowledged, the latest last
        self.known: list[_Unplaced] = []  # of the unplaced: read

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.READ:
            return NOTHING
        message = row.message_id
        first, before = (
            self.tried.get(message or "", (row, None)) if is_further(row) else (None, self.highest)
        )
        if before is not None:
            self.before[row.seq_begin] = (before, first)
        if message is None or message in self.twice:
            return NOTHING
        if message in self.tried or is_further(row):
            self.unplaced.pop(message, None)
            self.twice.add(message)
        elif row.queue_offset is None:
            self.unplaced[message] = _Unplaced(row, self.highest)
            self.tried.setdefault(message, (row, self.highest))
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.READ:
            return self._read(row, row.queue_offset or 0)
        (earlier, first), highest = self.before.pop(row.seq_begin, (None, None)), self.highest
        if row.outcome is not Outcome.OK:
            return NOTHING
        if row.queue_offset is None:
            mine = self.unplaced.get(row.message_id or "")
            if mine is not None:
                self.watched.append(mine)
            return NOTHING
        offset = row.queue_offset
        for each in self.watched:
            lowest = each.after
            is_lower = lowest is None or offset < (lowest.queue_offset or 0)
            if is_lower and not is_further(row) and ended_before(each.row, row):
                each.after = row
        lost = highest is None or self.context.broker_died_since(row.broker, highest)
        if lost or offset > (highest.queue_offset or 0 if highest is not None else 0):
            self.highest = row
        if earlier is None or self.context.broker_died_since(row.broker, earlier):
            return NOTHING
        self.opportunities += 1
        if offset > (earlier.queue_offset or 0):
            return NOTHING
        return (Overtook(earlier, row, (), (earlier.queue_offset or 0, offset), first),)

    def _read(self, read: Row, offset: int) -> Iterable[Finding]:
        mine = self.unplaced.pop(read.message_id or "", None)
        if mine is None or self.context.broker_died_since(read.broker, mine.row):
            return NOTHING
        mine.read = read
        found: list[Finding] = []
        certain = not self.context.info.begins_late  # an earlier try may have put it there
        before, after = mine.before, mine.after
        if before is not None and not self.context.broker_died_since(read.broker, before):
            self.opportunities += 1
            if offset <= (before.queue_offset or 0):
                places = (before.queue_offset or 0, offset)
                found.append(Overtook(before, mine.row, (read,), places, certain=certain))
        if after is not None:
            self.opportunities += 1
            if offset >= (after.queue_offset or 0):
                places = (offset, after.queue_offset or 0)
                found.append(Overtook(mine.row, after, (read,), places, certain=certain))
        for other in self.known:
            first, second = (
                (other, mine) if other.row.seq_begin < mine.row.seq_begin else (mine, other)
            )
            acknowledged = first.row.outcome is Outcome.OK and ended_before(first.row, second.row)
            if not acknowledged or self.context.broker_died_since(read.broker, first.row):
                continue
            if first.read is not None and second.read is not None:
                self.opportunities += 1
                places = (first.read.queue_offset or 0, second.read.queue_offset or 0)
                if places[0] >= places[1]:
                    reads = (first.read, second.read)
                    found.append(Overtook(first.row, second.row, reads, places, certain=certain))
        self.known = [*self.known[1 - WATCHED :], mine]
        return found


judge = QueueJudge


def explain(found: Overtook) -> str:
    earlier, later = found.earlier, found.later
    first, second = found.offsets
    return (
        f"message {later.message_id}, which {who(later)} began to send at {at(later)}, has offset {second} of "
        f"{later.queue}, although message {earlier.message_id} at offset {first} (sent by {who(earlier)} at "
        f"{at(earlier)}) had been acknowledged before"
    )
