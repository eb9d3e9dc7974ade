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
before it. Both were sent once by then (possibly, where the number of the later one, `attempt`, tells of a try to the
queue that is not in the history); after a death of the broker nothing is said, since the first copy may not be the one
that was read.

Left out are sends that were acknowledged weakly (codes 10 to 12), half messages, whose transaction's end decides, the
topics of retries and dead letters, readings in which a read failed or told no id, or that don't say how far they went
(`value`), and for both questions queues from which the broker removed messages on purpose by then (a TRIM to 0 removes
none), and brokers that removed any that waited. A broker that flushes later may lose by a crash what it acknowledged
less than an interval, a timer's slack and a sync before, and what was due before: it may have noted that the message
is delivered, and not yet flushed it. A broker measures the wait by its wall clock: after a recorded step nothing is
claimed. A level beyond the table is the last one.
"""

import numpy as np

from specs.clauses.premises import DRAINED, NO_WALL_CLOCK_STEP, NOT_REMOVED
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, ms, who
from specs.facts.columns import NEVER, NO_TEXT, NONE, NOWHERE, Ints
from specs.facts.readings import COLUMNS as READING_COLUMNS
from specs.facts.readings import Queue, queues_with
from specs.facts.segments import Segments, chosen, dense, first_of_each, is_first, positions
from specs.facts.stored import (
    STORED_COLUMNS,
    STORED_WEAKLY,
    broker_died,
    copies,
    delayed,
    levels,
    refused,
    tried_unseen,
)
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
COLUMNS = tuple(dict.fromkeys(["attempt", *STORED_COLUMNS, *READING_COLUMNS]))


class NotThere(Finding):
    sent: Row
    read: Row
    wait_us: int


class Overtaken(Finding):
    """earlier: acknowledged before `later` was sent, and read (`behind`) behind it (`before`)."""

    earlier: Row
    later: Row
    before: Row
    behind: Row


class _Delayed:
    """sends: those that wait on a level, as far as anybody knows; acknowledged: of each message its first good answer.

    Of each row: message, the number of its message in its queue; begun, when that was first sent; level and wait_us, if
    it is one of the sends. until: of each queue the seq from which on nothing is claimed.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows, named = rows, rows.text("message_id") != NO_TEXT
        self.sends = positions(delayed(rows) & ~refused(rows) & ~copies(rows) & named)
        self.message, count = dense(rows.queue, rows.text("message_id"))
        self.level, self.wait_us = np.zeros((2, rows.size), np.int64)
        self.level[self.sends], self.wait_us[self.sends] = levels(rows, self.sends)
        good = rows.ended_as(Outcome.OK) & (rows.end < NEVER)
        good &= ~np.isin(rows.number("code"), STORED_WEAKLY)
        answered = self.sends[good[self.sends]]
        answered = answered[np.argsort(rows.end[answered], kind="stable")]
        self.acknowledged = answered[is_first(self.message[answered])]
        first = chosen(self.sends, first_of_each(self.message[self.sends], count), NOWHERE)
        self.begun = chosen(rows.begin, first, NEVER)[self.message]
        self.until = np.full(int(rows.queue.max()) + 1, NEVER, np.int64)
        for place in self.sends[is_first(rows.queue[self.sends])].tolist():
            self.until[rows.queue[place]] = _until(rows, place)


def _until(rows: Rows, place: int) -> int:
    """When a wall clock was set, or the broker removed anything on purpose, of the queue or of what waits."""
    context, queue = rows.context_of(place), rows.queue_of(place)
    told = [seq for seq, kept in context.trims.get(queue, ()) if kept]
    for each, trims in context.trims.items():
        if each.topic == SCHEDULE_TOPIC and each.broker == queue.broker:
            told += [seq for seq, _ in trims]
    return min([context.clock_stepped, *told])


def judge(rows: Rows, findings: Findings) -> None:
    waiting = _Delayed(rows)
    if len(waiting.sends):
        for queue, sends in queues_with(rows, waiting.sends, (Kind.SEND, Kind.READ)):
            _there(waiting, queue, sends, findings)
        _order(waiting, findings)


def _there(waiting: _Delayed, queue: Queue, sends: Ints, findings: Findings) -> None:
    """Each whole reading of a queue, and what was acknowledged long enough before and not missed yet."""
    rows, name = waiting.rows, waiting.rows.text("message_id")
    left = np.intersect1d(waiting.acknowledged, sends).tolist()
    for reading in queue.readings():
        marker, now = reading.marker, int(rows.end[reading.marker])
        if now >= waiting.until[rows.queue[marker]]:
            continue
        for sent in left.copy():
            wait_us = int(waiting.wait_us[sent])
            due_us = int(rows.ended[sent]) + wait_us
            if rows.end[sent] >= rows.begin[marker] or not queue.in_time(sent, due_us, marker):
                continue
            if _may_be_unflushed(rows, sent, wait_us, now):
                continue
            findings.at_stake_times(marker, 1)
            if max(reading.shown.get(int(name[sent]), [NONE])) <= waiting.begun[sent]:
                left.remove(sent)
                findings.shown(NotThere, {"sent": sent, "read": marker}, {"wait_us": wait_us})


def _may_be_unflushed(rows: Rows, sent: int, wait_us: int, now: int) -> bool:
    """May a crash have taken it, where it waits or, if its time was over, in its queue?"""
    context, broker = rows.context_of(sent), rows.name_of("broker", sent)
    if context.info.config.flush != "async":
        return False
    begin, due_us = rows.begin[sent], int(rows.started[sent]) + wait_us
    flushed = context.unflushed.get(broker, ())
    if any(begin < seq <= now and rows.ended[sent] > safe_us for seq, safe_us in flushed):
        return True
    crashes = context.broker_deaths.get(broker, ())
    bound_us = context.info.clock_bound_us
    return any(begin < seq <= now and at_us + bound_us >= due_us for seq, at_us in crashes)


def _order(waiting: _Delayed, findings: Findings) -> None:
    """Of each level, every first read of a message against the one sent last of those read before."""
    rows, message, sends = waiting.rows, waiting.message, waiting.sends
    read = rows.are(Kind.READ) & rows.ended_as(Outcome.OK) & (rows.offset != NONE)
    read &= rows.end < waiting.until[rows.queue]
    reads = positions(read)
    reads = reads[np.argsort(rows.end[reads], kind="stable")]
    line = Line(message, rows.begin, sends)
    known = line.count_before(message[reads], rows.end[reads])
    reads, known = reads[known > 0], known[known > 0]
    lowest = Segments(message[reads]).highest_before(-rows.offset[reads])
    lower = chosen(rows.offset[reads], lowest, NEVER) > rows.offset[reads]
    reads = reads[lower & (known == 1)]
    sent = line.last_before(message[reads], rows.end[reads])
    level = dense(rows.queue[reads], waiting.level[sent])[0]
    before = Segments(level).highest_before(rows.begin[sent])
    mine = Line(message, rows.end, waiting.acknowledged).last_before(
        message[reads], rows.end[reads] + 1
    )
    counts = (before != NOWHERE) & (mine != NOWHERE)
    counts &= rows.offset[reads] >= rows.offset[reads[before]]
    for index in positions(counts).tolist():
        counts[index] = not broker_died(rows, int(mine[index]), int(rows.end[reads[index]]))
    findings.at_stake(reads[counts])
    wrong = counts & (rows.end[mine] < rows.begin[sent[before]])
    before = before[wrong]
    findings.broken(
        Overtaken,
        earlier=mine[wrong],
        later=sent[before],
        before=reads[before],
        behind=reads[wrong],
        certain=~tried_unseen(rows, message)[sent[before]],
    )


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
