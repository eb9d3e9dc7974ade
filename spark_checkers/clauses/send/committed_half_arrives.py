"""SND-13 over columns: only queues to which half messages were sent are looked at, reading by reading."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Planted, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.readings import COLUMNS as READING_COLUMNS
from specs.facts.readings import Queue, queues_with
from specs.facts.rows import Rows
from specs.facts.segments import MS, NEVER, NO_TEXT, Ints
from specs.facts.stored import COLUMNS, COMMIT, ROLLBACK, STORED_WEAKLY, copies, halves, refused
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome


def kernel(rows: Rows, findings: Findings) -> None:
    named = (rows.text("message_id") != NO_TEXT) & ~copies(rows)
    half = np.flatnonzero(halves(rows) & named & ~refused(rows))
    if len(half):
        for queue, _ in queues_with(rows, half, (Kind.SEND, Kind.END_TRANSACTION, Kind.READ)):
            _Halves(queue, findings, queue.where[named[queue.where]]).judge()


class _Halves:
    """The half messages of one queue."""

    def __init__(self, queue: Queue, findings: Findings, where: Ints) -> None:
        self.queue, self.rows, self.findings = queue, queue.rows, findings
        rows, message = self.rows, self.rows.text("message_id")
        weak = np.isin(rows.number("code"), STORED_WEAKLY)
        good = halves(rows) & rows.ended_as(Outcome.OK) & ~weak & (rows.number("delay_level") <= 0)
        good &= rows.number("attempt") <= 1
        told = rows.ended_as(Outcome.OK, Outcome.SENT)
        self.half: dict[int, int] = {}
        self.commit: dict[int, int] = {}
        self.unclear: dict[int, int] = {}  # from which seq on
        vain, is_send, is_end = refused(rows), rows.are(Kind.SEND), rows.are(Kind.END_TRANSACTION)
        for row in where.tolist():
            each, begin = int(message[row]), int(rows.begin[row])
            if is_send[row] and not vain[row]:
                if good[row] and each not in self.half:
                    self.half[each] = row
                else:
                    self.unclear.setdefault(each, begin)
            elif is_end[row] and rows.value[row] == ROLLBACK:
                self.unclear.setdefault(each, begin)
            elif is_end[row] and told[row] and rows.value[row] == COMMIT:
                half = self.half.get(each)
                if half is not None and rows.end[half] < begin:
                    self.commit.setdefault(each, row)

    def judge(self) -> None:
        rows = self.rows
        left = dict(self.commit)
        for reading in self.queue.readings():
            marker, now = reading.marker, int(rows.end[reading.marker])
            if rows.context_of(marker).kept_from(rows.queue_of(marker), now):
                continue
            for message, commit in list(left.items()):
                half = self.half[message]
                if self.unclear.get(message, NEVER) < now or rows.end[commit] >= rows.begin[marker]:
                    continue
                if not self._is_due(half, commit, marker):
                    continue
                self.findings.at_stake(np.asarray([marker], np.int64))
                if not any(rows.begin[half] < end for end in reading.shown.get(message, ())):
                    del left[message]
                    self.findings.violation([half, commit, marker])

    def _is_due(self, half: int, commit: int, marker: int) -> bool:
        """Has the commit arrived for certain, and was there time enough since?"""
        rows = self.rows
        context, now = rows.context_of(half), int(rows.end[marker])
        config = context.info.config
        handed = rows.started[commit] if rows.ended[commit] >= NEVER else rows.ended[commit]
        there_us = int(handed) + config.delay_bound_ms * MS + context.info.clock_bound_us
        sent_us, begin = int(rows.started[half]), int(rows.begin[half])
        if not self.queue.in_time(half, there_us, marker):
            return False
        party = (rows.name_of("client_id", commit), rows.name_of("broker", half))
        if context.fault_between(sent_us, there_us, now, party):
            return False
        if rows.was_disturbed(commit, there_us, now, broker=party[1]):
            return False
        asked_ms = config.transaction_check_max * config.transaction_check_interval_ms
        if there_us - sent_us > (config.transaction_timeout_ms + asked_ms) * MS:
            return False
        client, broker = party
        if context.broker_paused_since(broker, sent_us, now) or context.client_died_between(
            client, begin, now
        ):
            return False
        for seq, _group, row in context.work.get(client, ()):
            if row.kind is Kind.LEAVE and begin < seq <= now and row.started_us <= there_us:
                return False
        if any(begin < seq <= now for seq in context.epoch_deaths(broker)):
            return False
        crashes = [us for seq, us in context.broker_deaths.get(broker, ()) if begin < seq <= now]
        return not crashes or (config.flush != "async" and min(crashes) > there_us)


TWIN = Twin(
    "SND-13", tuple(dict.fromkeys(["client_id", "attempt", *COLUMNS, *READING_COLUMNS])), kernel
)
find = TWIN.find


# ---- what breaks the clause, planted


def committed_half_missing(trace: Trace) -> Changes:
    for send, read in planting.missed(trace, 0):
        yield partial(_half_committed, trace, send, read)


def _half_committed(trace: Trace, send: Row, read: Row) -> Planted:
    halved = planting.as_half(trace, send)
    gone = Trace(halved.rows, trace.info).without([read.seq_begin], [send.seq_begin])
    bare: dict[str, Any] = dict.fromkeys(
        ("queue_offset", "body_hash", "tags", "key_seq", "attempt", "view", "detail")
    )
    said = {**bare, "kind": Kind.END_TRANSACTION, "outcome": Outcome.SENT, "value": 8, "code": None}
    commit = trace.another(send, send, 1, **said)
    return Trace(gone.rows, trace.info).with_more([commit], gone.about)


DEFECTS = (
    Mutant(
        "committed-half-missing",
        "SND-13",
        "a half message that was committed does not come",
        committed_half_missing,
        generated=False,
    ),
)
