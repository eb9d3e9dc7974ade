"""SND-7 over columns: deliveries and reads of messages that were sent with a delay level, against their sends."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spark_checkers.rows import MS, NEVER, Findings, Rows
from spark_checkers.segments import Ints, dense
from spark_checkers.twin import Twin
from specs.clauses.base import is_copy_topic
from specs.vocabulary import Kind, Outcome

_UNITS_US = {"s": 1_000 * MS, "m": 60_000 * MS, "h": 3_600_000 * MS, "d": 86_400_000 * MS}


def waits_us(table: str) -> list[int]:
    """The time of each level in µs, level 1 first; 0 for a word that is no duration."""
    waits = []
    for word in table.split():
        number, unit = word[:-1], _UNITS_US.get(word[-1:], 0)
        waits.append(int(number) * unit if number.isascii() and number.isdigit() else 0)
    return waits


def may_be_seen(rows: Rows, sends: Ints) -> Ints:
    """From when on each send's message may be seen, in µs: the send's begin plus its level's time."""
    tables = {run: waits_us(rows.context_of(int(at)).info.config.delay_levels) for run, at in _one_of_each(rows, sends)}
    level = rows.number("delay_level")[sends]
    waits = np.zeros(len(sends), np.int64)
    for run, table in tables.items():
        if table:
            delayed = (rows.run[sends] == run) & (level > 0)
            waits[delayed] = np.asarray(table, np.int64)[np.minimum(level[delayed], len(table)) - 1]
    return waits


def _one_of_each(rows: Rows, where: Ints) -> Sequence[tuple[int, int]]:
    runs, first = np.unique(rows.run[where], return_index=True)
    return [(int(run), int(where[at])) for run, at in zip(runs, first, strict=True)]


def kernel(rows: Rows, findings: Findings) -> None:
    """Only the messages that were ever delayed are looked at one by one."""
    copies = np.asarray([*(is_copy_topic(word) for word in rows.words("topic")), False], np.bool_)[rows.text("topic")]
    message, count = dense(rows.run, rows.source, rows.text("topic"))
    sends = np.flatnonzero(rows.are(Kind.SEND) & ~copies)
    waits = may_be_seen(rows, sends)
    delayed = np.zeros(count, np.bool_)
    delayed[message[sends[waits > 0]]] = True
    of_delayed = delayed[message] & ~copies
    deliver = rows.are(Kind.DELIVER)
    read = rows.are(Kind.READ) & rows.ended_as(Outcome.OK) & (rows.end < NEVER)
    seen = np.flatnonzero((deliver | read) & of_delayed)
    steps = rows.clock_stepped(seen)
    is_call = deliver[seen]
    when = np.where(is_call, rows.begin[seen], rows.end[seen])
    when_us = np.where(is_call | (rows.ended[seen] >= NEVER), rows.started[seen], rows.ended[seen])
    mine = of_delayed[sends]
    by_message: dict[int, list[tuple[int, int]]] = {}
    for at, wait in zip(sends[mine].tolist(), waits[mine].tolist(), strict=True):
        by_message.setdefault(int(message[at]), []).append((at, wait))
    at_stake, found = [], []
    for row, seq, time, step in zip(seen.tolist(), when.tolist(), when_us.tolist(), steps.tolist(), strict=True):
        known = [(at, wait) for at, wait in by_message[int(message[row])] if rows.begin[at] < seq]
        if not known or step < seq:
            continue
        at, wait = min(known, key=lambda send: (int(rows.started[send[0]]) + send[1], int(rows.begin[send[0]])))
        if wait:
            at_stake.append(row)
            if time <= int(rows.started[at]) + wait - MS:
                found.append((at, row))
    findings.at_stake(np.asarray(at_stake, np.int64))
    evidence = np.asarray(found, np.int64).reshape(-1, 2)
    findings.violated(evidence[:, 0], evidence[:, 1])


TWIN = Twin("SND-7", ("message_id", "origin_id", "outcome", "delay_level", "started_us", "ended_us"), kernel)
find = TWIN.find
