"""SND-7 over columns: deliveries and reads of messages that were sent with a delay level, against their sends."""

from __future__ import annotations

from functools import partial

import numpy as np

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.rows import Rows
from specs.facts.segments import MS, NEVER, dense
from specs.facts.stored import copies as copies_of
from specs.facts.stored import levels
from specs.vocabulary import Kind, Outcome


def kernel(rows: Rows, findings: Findings) -> None:
    """Only the messages that were ever delayed are looked at one by one."""
    copies = copies_of(rows)
    message, count = dense(rows.run, rows.source, rows.text("topic"))
    sends = np.flatnonzero(rows.are(Kind.SEND) & ~copies)
    waits = levels(rows, sends)[1]
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
    at_stake, found, certain = [], [], []
    clock = rows.text("clock")
    for row, seq, time, step in zip(
        seen.tolist(), when.tolist(), when_us.tolist(), steps.tolist(), strict=True
    ):
        known = [(at, wait) for at, wait in by_message[int(message[row])] if rows.begin[at] < seq]
        if not known or step < seq:
            continue
        at, wait = min(
            known, key=lambda send: (int(rows.started[send[0]]) + send[1], int(rows.begin[send[0]]))
        )
        if wait:
            at_stake.append(row)
            missing = int(rows.started[at]) + wait - MS - time
            if missing >= 0:
                unsure = rows.context_of(row).info.clock_bound_us if clock[at] != clock[row] else 0
                found.append((at, row))
                certain.append(missing >= unsure)
    findings.at_stake(np.asarray(at_stake, np.int64))
    evidence = np.asarray(found, np.int64).reshape(-1, 2)
    findings.violated(evidence[:, 0], evidence[:, 1], certain=np.asarray(certain, np.bool_))


TWIN = Twin(
    "SND-7",
    ("message_id", "origin_id", "outcome", "delay_level", "detail", "started_us", "ended_us"),
    kernel,
)
find = TWIN.find


# ---- what breaks the clause, planted


def seen_before_its_level(trace: Trace) -> Changes:
    last = len(trace.info.config.delay_levels.split())
    for send, read in planting.reads(trace):
        change = {send.seq_begin: {"delay_level": last}}
        about = (send.seq_begin, read.seq_begin)
        yield partial(trace.changed, change, about)


def no_level_at_all(trace: Trace) -> Changes:
    for send, _read in planting.reads(trace):
        told = (
            row
            for row in trace.rows
            if row.message_id == send.message_id and row.delay_level is not None
        )
        change = {row.seq_begin: {"delay_level": -1} for row in (send, *told)}
        yield partial(trace.changed, change)


DEFECTS = (
    Mutant(
        "seen-before-its-level",
        "SND-7",
        "a delayed message is there at once",
        seen_before_its_level,
    ),
)

LOOKALIKES = (
    Mutant("no-level-at-all", None, "a level below 0 waits for nothing", no_level_at_all),
)
