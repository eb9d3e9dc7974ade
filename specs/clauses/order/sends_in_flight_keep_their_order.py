"""What one producer sends to a queue while earlier sends are not answered yet lies there in the order of sending.

A producer is one process of a client, where that is recorded: two under one client id have no order between them.
Judged of acknowledged sends of one producer that were under way together, by the places that the answers tell, and by
those at which readers find the messages: a copy of the earlier one behind the later one breaks it, whichever copy was
acknowledged. So a producer that sends again what had no answer breaks it by the second copy, and one that numbers its
sends, so that the log takes each once and none before its turn, keeps it. That a message is stored twice is another
clause's to say, and of sends that followed an answer ORD-9 says the same for all producers.

Which send was first is when it was begun: whoever records asks for the next one when the producer has taken the last.
Says nothing once a send of the producer's ended without anybody knowing how, in whatever queue: the producer may then
begin anew with all that is under way. Nor of delayed messages, half messages, and batches. A reader's rows count as far
as they ascend.
Memory: the sends that were under way together, until the end: a reader comes last.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import ANSWERED, BROKER_LIVES, IN_FLIGHT, NO_FRAME_TWICE
from specs.clauses.rows import ended_before, is_copy_topic, own_process
from specs.clauses.stored import is_half
from specs.clauses.words import at, who
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "ORD-15"
TITLE = "sends in flight keep their order"
STATEMENT = (
    "Messages that one producer began to send to one queue one after the other, without waiting for the answers, lie "
    "there in that order."
)
PARTY = Party.PAIR
KEY = Key.QUEUE
PREMISE = (IN_FLIGHT, ANSWERED, NO_FRAME_TWICE, BROKER_LIVES)
SOURCES = ("docs/sources.md#sends-in-flight",)
KINDS = frozenset({Kind.SEND, Kind.READ})
NEEDS = frozenset({Kind.SEND})
WATCHED = 64
"""So many acknowledged sends of a producer are compared with the next one that is acknowledged."""


_Producer = tuple[str, str | None]
"""A client and its process."""


def producer(row: Row) -> _Producer:
    return row.client_id or "", own_process(row)


def wants(row: Row) -> bool:
    """Acknowledged sends of one message that tell their place, and what was read."""
    if row.queue_offset is None or row.message_id is None or row.outcome is not Outcome.OK:
        return False
    if row.kind is Kind.READ:
        return True
    alone = row.value is None and (row.attempt or 1) == 1 and row.client_id is not None
    return alone and not (row.delay_level or is_half(row) or is_copy_topic(row.topic))


@dataclass(frozen=True, slots=True)
class LiesBehind(Finding):
    """reads: that show where the two lie, where the answers do not. offsets: of the earlier and of the later one."""

    earlier: Row
    later: Row
    reads: tuple[Row, ...]
    offsets: tuple[int, int]


class QueueJudge(Judge):
    """under_way: the sends of each producer that are not answered. answered: those that were, the latest last.

    together: by message, what was under way with another; twice: messages that were sent more than once; at_stake: the
    begins of those that are not answered. latest: of each producer, of the messages read so far the one that was begun
    last, and its reading.
    """

    __slots__ = ("answered", "at_stake", "latest", "read_to", "together", "twice", "under_way")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.under_way: dict[_Producer, dict[int, Row]] = {}
        self.answered: dict[_Producer, deque[Row]] = {}
        self.together: dict[str, Row] = {}
        self.twice: set[str] = set()
        self.at_stake: set[int] = set()
        self.latest: dict[_Producer, tuple[Row, Row]] = {}
        self.read_to = -1

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.READ:
            return NOTHING
        others = self.under_way.setdefault(producer(row), {})
        if others:
            for each in (*others.values(), row):
                self._is_together(each)
        others[row.seq_begin] = row
        return NOTHING

    def _is_together(self, row: Row) -> None:
        message = row.message_id or ""
        self.at_stake.add(row.seq_begin)
        if self.together.setdefault(message, row).seq_begin != row.seq_begin:
            self.twice.add(message)

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.READ:
            return list(self._read(row, row.queue_offset or 0))
        mine = producer(row)
        self.under_way.get(mine, {}).pop(row.seq_begin, None)
        answered = self.answered.setdefault(mine, deque(maxlen=WATCHED))
        is_together = row.seq_begin in self.at_stake
        self.at_stake.discard(row.seq_begin)
        if not self.context.was_sure(row):
            return NOTHING
        found = list(self._compared(row, answered))
        self.opportunities += is_together
        answered.append(row)
        return found

    def _compared(self, row: Row, answered: Iterable[Row]) -> Iterator[Finding]:
        """Against the other answers of sends that were under way with it."""
        for other in answered:
            first, second = (other, row) if other.seq_begin < row.seq_begin else (row, other)
            places = (first.queue_offset or 0, second.queue_offset or 0)
            met = not ended_before(first, second)
            if met and places[0] > places[1] and not self._is_excused(first):
                yield LiesBehind(first, second, (), places)

    def _read(self, read: Row, offset: int) -> Iterator[Finding]:
        message = read.message_id or ""
        sent = self.together.get(message)
        if offset <= self.read_to:
            return
        self.read_to = offset
        if sent is None or message in self.twice or not self.context.was_sure(sent):
            return
        latest = self.latest.get(producer(sent))
        if latest is None or sent.seq_begin > latest[0].seq_begin:
            self.latest[producer(sent)] = (sent, read)
            return
        later, earlier_read = latest
        told = offset == sent.queue_offset and earlier_read.queue_offset == later.queue_offset
        if sent.seq_begin < later.seq_begin and not told and not self._is_excused(sent):
            places = (offset, earlier_read.queue_offset or 0)
            yield LiesBehind(sent, later, (earlier_read, read), places)

    def _is_excused(self, first: Row) -> bool:
        context = self.context
        return context.frames_twice is not None or context.broker_died_since(first.broker, first)


judge = QueueJudge


def explain(found: LiesBehind) -> str:
    earlier, later = found.earlier, found.later
    first, second = found.offsets
    return (
        f"{who(earlier)} began to send message {earlier.message_id} at {at(earlier)}, before {later.message_id} at "
        f"{at(later)}, and it lies at offset {first} of {later.queue}, behind that one at {second}"
    )
