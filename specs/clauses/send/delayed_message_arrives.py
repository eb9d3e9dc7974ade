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

from dataclasses import dataclass

import numpy as np

from specs.clauses.judging import Finding
from specs.clauses.premises import DRAINED, NO_WALL_CLOCK_STEP, NOT_REMOVED
from specs.clauses.words import at, ms, who
from specs.facts.findings import Findings
from specs.facts.readings import COLUMNS as READING_COLUMNS
from specs.facts.readings import Queue, queues_with
from specs.facts.rows import Rows
from specs.facts.segments import NEVER, NO_TEXT, NONE, Ints
from specs.facts.stored import (
    STORED_COLUMNS,
    STORED_WEAKLY,
    broker_died,
    copies,
    delayed,
    levels,
    refused,
)
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
COLUMNS = tuple(dict.fromkeys([*STORED_COLUMNS, *READING_COLUMNS]))


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


def judge(rows: Rows, findings: Findings) -> None:
    sends = np.flatnonzero(
        delayed(rows) & ~refused(rows) & ~copies(rows) & (rows.text("message_id") != NO_TEXT)
    )
    if len(sends):
        level, wait = levels(rows, sends)
        of_send = {
            at: (int(which), int(us))
            for at, which, us in zip(sends.tolist(), level, wait, strict=True)
        }
        for queue, mine in queues_with(rows, sends, (Kind.SEND, Kind.READ)):
            _Delayed(queue, findings, mine, of_send).judge()


class _Delayed:
    """The delayed messages of one queue."""

    def __init__(
        self, queue: Queue, findings: Findings, sends: Ints, of_send: dict[int, tuple[int, int]]
    ) -> None:
        self.queue, self.rows, self.findings, self.of_send = queue, queue.rows, findings, of_send
        rows = self.rows
        self.message = rows.text("message_id")
        self.sends: dict[int, list[int]] = {}
        for send in sends.tolist():
            self.sends.setdefault(int(self.message[send]), []).append(send)
        weak = np.isin(rows.number("code"), STORED_WEAKLY)
        answered = sends[
            rows.ended_as(Outcome.OK)[sends] & (rows.end[sends] < NEVER) & ~weak[sends]
        ]
        self.acknowledged: dict[int, int] = {}
        for send in answered[np.argsort(rows.end[answered], kind="stable")].tolist():
            self.acknowledged.setdefault(int(self.message[send]), send)
        self.context, self.place = rows.context_of(int(sends[0])), rows.queue_of(int(sends[0]))
        self.stepped = self.context.clock_stepped

    def judge(self) -> None:
        self._there()
        self._order()

    def _there(self) -> None:
        rows = self.rows
        left = dict(self.acknowledged)
        for reading in self.queue.readings():
            marker = reading.marker
            now = int(rows.end[marker])
            if now >= self.stepped or self._is_trimmed(now):
                continue
            for message, sent in list(left.items()):
                due_us = int(rows.ended[sent]) + self.of_send[sent][1]
                if rows.end[sent] >= rows.begin[marker] or not self.queue.in_time(
                    sent, due_us, marker
                ):
                    continue
                if self._may_be_unflushed(sent, now):
                    continue
                self.findings.at_stake(np.asarray([marker], np.int64))
                first = int(rows.begin[self.sends[message][0]])
                if not any(first < end for end in reading.shown.get(message, ())):
                    del left[message]
                    also = {"wait_us": self.of_send[sent][1]}
                    self.findings.shown(NotThere, {"sent": sent, "read": marker}, also)

    def _may_be_unflushed(self, sent: int, now: int) -> bool:
        """May a crash have taken it, where it waits or, if its time was over, in its queue?"""
        rows, context, broker = self.rows, self.context, self.rows.name_of("broker", sent)
        if context.info.config.flush != "async":
            return False
        begin, due_us = rows.begin[sent], int(rows.started[sent]) + self.of_send[sent][1]
        waiting = context.unflushed.get(broker, ())
        if any(begin < seq <= now and rows.ended[sent] > safe_us for seq, safe_us in waiting):
            return True
        crashes = context.broker_deaths.get(broker, ())
        bound_us = context.info.clock_bound_us
        return any(begin < seq <= now and at_us + bound_us >= due_us for seq, at_us in crashes)

    def _is_trimmed(self, now: int) -> bool:
        """Had the broker by then removed anything on purpose, of the queue or of what waits?"""
        place, context = self.place, self.context
        return bool(context.kept_from(place, now)) or context.removed_of(
            SCHEDULE_TOPIC, place.broker, now
        )

    def _order(self) -> None:
        """Of each level, every first read of a message against the one sent last of those read before."""
        rows, queue = self.rows, self.queue
        reads = queue.where[
            rows.are(Kind.READ)[queue.where]
            & queue.ok[queue.where]
            & (rows.offset[queue.where] != NONE)
        ]
        lowest: dict[int, int] = {}
        latest: dict[int, tuple[int, int]] = {}
        for read in reads[np.argsort(rows.end[reads], kind="stable")].tolist():
            now, message, offset = (
                int(rows.end[read]),
                int(self.message[read]),
                int(rows.offset[read]),
            )
            sends = [send for send in self.sends.get(message, ()) if rows.begin[send] < now]
            if now >= self.stepped or not sends or lowest.get(message, NEVER) <= offset:
                continue
            if self._is_trimmed(now):
                break
            lowest[message] = offset
            if len(sends) > 1:
                continue
            (sent,) = sends
            level = self.of_send[sent][0]
            known = latest.get(level)
            if known is None or rows.begin[sent] > rows.begin[known[0]]:
                latest[level] = (sent, read)
            mine = self.acknowledged.get(message)
            if (
                known is None
                or mine is None
                or rows.end[mine] > now
                or broker_died(rows, mine, now)
            ):
                continue
            if offset >= rows.offset[known[1]]:
                self.findings.at_stake(np.asarray([read], np.int64))
                if rows.end[mine] < rows.begin[known[0]]:
                    before = {"later": known[0], "before": known[1]}
                    self.findings.shown(Overtaken, {"earlier": mine, **before, "behind": read})


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
