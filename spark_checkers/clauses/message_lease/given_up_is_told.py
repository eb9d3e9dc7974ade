"""PML-6 over columns: last hand-outs that may be, against the first two readings beyond each that lie apart."""

from __future__ import annotations

from functools import partial

import numpy as np

from spark_checkers.planting import LEASED, Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.message_names import may_be_any, offsets
from specs.facts.rows import Rows
from specs.facts.segments import MS, NEVER, NO_TEXT, NONE, Ints
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome, Queue


def kernel(rows: Rows, findings: Findings) -> None:
    """Only messages that were handed out as often as they may be are looked at, one by one."""
    done = rows.ended_as(Outcome.OK) & (rows.end < NEVER) & (rows.group != NO_TEXT)
    times = rows.number("reconsume_times")
    handed = np.flatnonzero(rows.are(Kind.RECEIVE) & done & (rows.offset != NONE) & (times >= 0))
    handed = handed[np.argsort(rows.end[handed], kind="stable")]
    reads = np.flatnonzero(rows.are(Kind.PROGRESS) & done & (rows.value != NONE))
    reads = reads[np.argsort(rows.end[reads], kind="stable")]
    tells = rows.are(Kind.ACK, Kind.DEAD_LETTER) & ~rows.ended_as(Outcome.REFUSED)
    offset, of_any = rows.shared(offsets), may_be_any(rows)
    told: set[tuple[int, int]] = set()
    for place in handed.tolist():
        limit = rows.context_of(place).info.config.max_reconsume_times
        message = int(rows.lane[place]), int(rows.offset[place])
        if not 0 <= limit <= times[place] or message in told:
            continue
        told.add(message)
        mine = tells & (rows.lane == message[0]) & ((offset == message[1]) | of_any)
        about = np.flatnonzero(mine)
        over = int(rows.begin[about].min()) if len(about) else NEVER
        if over > rows.end[place]:
            _judge(rows, findings, place, reads[rows.lane[reads] == message[0]], over, about)


def _judge(rows: Rows, findings: Findings, place: int, reads: Ints, over: int, about: Ints) -> None:
    """over: the seq at which something was first told of the message. about: where such rows lie."""
    info = rows.context_of(place).info
    bound_us = info.config.schedule_slack_ms * MS + info.clock_bound_us
    beyond = reads[(rows.value[reads] > rows.offset[place]) & (rows.end[reads] < over)]
    first = beyond[rows.begin[beyond] > rows.end[place]][:1].tolist()
    for passed in first:
        due_us = int(rows.ended[passed]) + bound_us
        later = beyond[(rows.end[beyond] > rows.end[passed]) & (rows.started[beyond] >= due_us)]
        for reading in later[:1].tolist():
            if not _is_excused(rows, place, int(rows.end[reading])):
                findings.at_stake_times(place, 1)
                findings.violation([place, passed, reading])
            return
    shown = about[(rows.begin[about] == over) & (rows.shared(offsets)[about] != NONE)]
    if len(shown) and rows.are(Kind.DEAD_LETTER)[shown[0]]:
        findings.at_stake_times(place, 1)


def _is_excused(rows: Rows, place: int, now: int) -> bool:
    context = rows.context_of(place)
    queue = Queue(
        rows.name_of("topic", place),
        rows.name_of("broker", place),
        int(rows.number("queue_id")[place]),
    )
    began, epoch = int(rows.begin[place]), int(rows.number("broker_epoch")[place])
    return (
        context.broker_died_since(queue.broker, began, epoch, now)
        or int(rows.offset[place]) < context.kept_from(queue, now)
        or context.resets.get((rows.name_of("group", place), *queue), NEVER) <= now
    )


TWIN = Twin("PML-6", ("message_id", "queue_offset", "reconsume_times", "value"), kernel)
find = TWIN.find


# ---- what breaks the clause, planted


def given_up_in_silence(trace: Trace) -> Changes:
    for row in _given_up(trace):
        yield partial(lambda a: trace.without([a.seq_begin], [a.seq_begin]), row)


def told_as_acknowledged(trace: Trace) -> Changes:
    for row in _given_up(trace):
        change = {"kind": Kind.ACK, "outcome": Outcome.SENT}
        yield partial(lambda a, to: trace.changed({a.seq_begin: to}), row, change)


def _given_up(trace: Trace) -> list[Row]:
    return [
        row
        for row in trace.rows
        if row.kind is Kind.DEAD_LETTER and row.outcome is Outcome.OK and row.seq_end is not None
    ]


DEFECTS = (
    Mutant(
        "given-up-in-silence",
        "PML-6",
        "nobody tells that a message was given up",
        given_up_in_silence,
        generated=False,
        consumed=LEASED,
    ),
)

LOOKALIKES = (
    Mutant(
        "given-up-or-acknowledged",
        None,
        "a message was not given up: somebody may have acknowledged it",
        told_as_acknowledged,
        generated=False,
        consumed=LEASED,
    ),
)
