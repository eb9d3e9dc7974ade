"""A delayed message is in the queue that it was meant for once its time is over, behind those acknowledged before it.

*There*: decided by each reading of the queue to its end that began after the time of the message's level, counted from
the answer to its send, and the slack of a timer and of a request. Its id must be among the messages that were read
meanwhile; the offset is nobody's to tell. Readings that overlap count as one. Where the broker died since it was sent,
it must have been up again for that slack, as its first answer about the queue afterwards shows. Where it was paused,
the pause must have been over for that slack and the time after which a broker tries again what it could not store. From
a fault on that filled its disk, or a pause that did not end, only a settled reading decides, which has waited for
everything. Not there is also what a reading has shown and a later one does not show.

*Behind*: each level is a queue of its own, first in, first out. Of two messages of one level for one queue the one
whose send had been acknowledged before the other one's began lies at the lower offset. A drain reads upwards: a message
is compared where it is read first, or lower than before, with the one sent last of those of its level that were read
before it. Both were sent once by then; after a death of the broker nothing is said, since the first copy may not be
the one that was read.

Left out are sends that were acknowledged weakly (codes 10 to 12), half messages, whose transaction's end decides, the
topics of retries and dead letters, readings in which a read failed or told no id, or that don't say how far they went
(`value`), and for both questions queues from which the broker removed messages on purpose by then (a TRIM to 0 removes
none), and brokers that removed any that waited. A broker that flushes later may lose by a crash what it acknowledged
less than an interval, a timer's slack and a sync before, and what was due before: it may have noted that the message
is delivered, and not yet flushed it. A broker measures the wait by its wall clock: after a recorded step nothing is
claimed. A level beyond the table is the last one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import FLUSHED_LATER, Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import DRAINED, NO_WALL_CLOCK_STEP, NOT_REMOVED
from specs.clauses.readings import Readings
from specs.clauses.rows import ended_before, is_copy_topic, over_us
from specs.clauses.stored import STORED_WEAKLY, is_delayed, is_refused, level_of, wait_us
from specs.clauses.words import at, ms, who
from specs.history.row import Row
from specs.plan.traits import Stake, Trait
from specs.vocabulary import SCHEDULE_TOPIC, Key, Kind, Outcome, Party

ID = "SND-11"
TITLE = "a delayed message arrives"
STATEMENT = (
    "An acknowledged delayed message is in the queue that it was meant for once its level's time is over, behind those "
    "of its level that were acknowledged before it was sent."
)
PARTY = Party.BROKER
KEY = Key.QUEUE
PREMISE = (DRAINED, NOT_REMOVED, NO_WALL_CLOCK_STEP)
SOURCES = ("docs/sources.md#delay",)
STAKES = (Stake(Trait.DELAYED),)
KINDS = frozenset({Kind.SEND, Kind.READ})
SETTINGS = ("delay_levels",)
NEEDS = frozenset({Kind.READ, Kind.SEND})
EXCUSED_BY = frozenset({Kind.CRASH, Kind.PAUSE})


def wants(row: Row) -> bool:
    """Copies wait for levels of their own."""
    return not is_copy_topic(row.topic)


@dataclass(frozen=True, slots=True)
class NotThere(Finding):
    sent: Row
    read: Row
    wait_us: int


@dataclass(frozen=True, slots=True)
class Overtaken(Finding):
    """earlier: acknowledged before `later` was sent, and read (`behind`) behind it (`before`)."""

    earlier: Row
    later: Row
    before: Row
    behind: Row


class QueueJudge(Judge):
    """Remembers the delayed messages for the queue, and of each level the one sent last of those that were read."""

    __slots__ = ("acknowledged", "latest", "lost", "lowest", "readings", "sends")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.sends: dict[str, list[Row]] = {}  # all that may be stored, by message
        self.acknowledged: dict[str, Row] = {}
        self.lost: set[str] = set()
        self.lowest: dict[str, int] = {}  # where each was read
        self.latest: dict[int, tuple[Row, Row]] = {}  # by level: its send and its read
        self.readings = Readings(context)

    def begins(self, row: Row) -> Iterable[Finding]:
        self.readings.begins(row)
        if (
            row.kind is Kind.SEND
            and row.message_id is not None
            and is_delayed(row)
            and not is_refused(row)
        ):
            self.sends.setdefault(row.message_id, []).append(row)
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        reading = self.readings.ends(row, self.sends)
        if row.kind is Kind.SEND:
            acknowledged = row.outcome is Outcome.OK and row.code not in STORED_WEAKLY
            if acknowledged and is_delayed(row) and row.message_id is not None:
                self.acknowledged.setdefault(row.message_id, row)
        elif (
            row.outcome is Outcome.OK
            and row.queue_offset is not None
            and row.message_id in self.sends
        ):
            if self._is_trimmed(row):
                return NOTHING
            return self._read(row, row.message_id or "", row.queue_offset)
        return NOTHING if reading is None else self._read_to_end(reading)

    def _read(self, row: Row, message: str, offset: int) -> Iterable[Finding]:
        lowest = self.lowest.get(message)
        if lowest is not None and lowest <= offset:
            return NOTHING
        self.lowest[message] = offset
        (first, *more), mine = self.sends[message], self.acknowledged.get(message)
        if more:
            return NOTHING
        level = level_of(first, self.config)
        latest = self.latest.get(level)
        if latest is None or first.seq_begin > latest[0].seq_begin:
            self.latest[level] = (first, row)
        if latest is None or mine is None or self.context.broker_died_since(mine.broker, mine):
            return NOTHING
        later, before = latest
        if offset < (before.queue_offset or 0):
            return NOTHING
        self.opportunities += 1
        return (Overtaken(mine, later, before, row),) if ended_before(mine, later) else NOTHING

    def _read_to_end(self, reading: Row) -> Iterable[Finding]:
        if self._is_trimmed(reading):
            return NOTHING
        found: list[Finding] = []
        for message, sent in self.acknowledged.items():
            waits_us = wait_us(sent, self.config)
            due_us = over_us(sent) + waits_us
            if not ended_before(sent, reading) or not self.readings.in_time(sent, due_us, reading):
                continue
            if message in self.lost or self._may_be_unflushed(sent, waits_us):
                continue
            self.opportunities += 1
            if message not in self.readings.shown:
                self.lost.add(message)
                found.append(NotThere(sent, reading, waits_us))
        return found

    def _is_trimmed(self, row: Row) -> bool:
        """Did the broker remove anything of the row's queue, or of what waited, on purpose?"""
        context = self.context
        return bool(context.kept_from.get(row.queue)) or context.removed_of(
            SCHEDULE_TOPIC, row.broker
        )

    def _may_be_unflushed(self, sent: Row, waits_us: int) -> bool:
        """May a crash have taken the message, where it waited or where it had been put when its time was over?"""
        context = self.context
        if context.may_be_unflushed(sent):
            return True
        due_us = sent.started_us + waits_us - context.info.clock_bound_us
        return self.config.flush == FLUSHED_LATER and any(
            crash.seq_begin > sent.seq_begin and crash.started_us >= due_us
            for crash in context.broker_deaths.get(sent.broker or "", ())
        )


judge = QueueJudge


def explain(found: NotThere | Overtaken) -> str:
    if isinstance(found, NotThere):
        sent, read = found.sent, found.read
        return (
            f"message {sent.message_id}, sent by {who(sent)} at {at(sent)} to {sent.queue} with delay level "
            f"{sent.delay_level}, which is {ms(found.wait_us)}, was not there when the queue was read up to "
            f"{read.value} at {at(read)}"
        )
    earlier, later, before, behind = found.earlier, found.later, found.before, found.behind
    return (
        f"message {earlier.message_id} was acknowledged before {who(later)} sent message {later.message_id} at "
        f"{at(later)}, both with delay level {earlier.delay_level}, but of {behind.queue} it lies at offset "
        f"{behind.queue_offset}, behind the later one at offset {before.queue_offset}"
    )
