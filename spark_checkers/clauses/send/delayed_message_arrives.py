"""SND-11 over columns: only queues to which delayed messages were sent are looked at, reading by reading."""

from __future__ import annotations

from functools import partial

import numpy as np

from spark_checkers import planting
from spark_checkers.planting import MS, Changes, Mutant, Planted, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.readings import COLUMNS as READING_COLUMNS
from specs.facts.readings import Queue, queues_with
from specs.facts.rows import Rows
from specs.facts.segments import NEVER, NO_TEXT, NONE, Ints
from specs.facts.stored import (
    COLUMNS,
    STORED_WEAKLY,
    broker_died,
    copies,
    delayed,
    levels,
    refused,
)
from specs.history.row import Row
from specs.vocabulary import SCHEDULE_TOPIC, Kind, Outcome


def kernel(rows: Rows, findings: Findings) -> None:
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
                    self.findings.violation([sent, marker])

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
                    self.findings.violation([mine, known[0], known[1], read], name="overtaken")


TWIN = Twin("SND-11", tuple(dict.fromkeys([*COLUMNS, *READING_COLUMNS])), kernel)
find = TWIN.find


# ---- what breaks the clause, planted


def delayed_message_missing(trace: Trace) -> Changes:
    for send, read in planting.missed(trace, 1_000 * MS):
        yield partial(_delayed, trace, send, read)


def _delayed(trace: Trace, send: Row, read: Row) -> Planted:
    about = (send.seq_begin,)
    gone = trace.without([read.seq_begin], about)
    change = {send.seq_begin: {"delay_level": 1, "key_seq": None}}
    return Trace(gone.rows, trace.info).changed(change, about)


DEFECTS = (
    Mutant(
        "delayed-message-missing",
        "SND-11",
        "a delayed message does not come",
        delayed_message_missing,
        generated=False,
    ),
)
