"""FLR-1 over columns: of each message when it was handed out and when it may first have been finished, against the
first reading in between that is beyond it."""

from __future__ import annotations

from functools import partial

import numpy as np

from spark_checkers import planting
from spark_checkers.planting import LEASED, Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.rows import Rows
from specs.facts.segments import NEVER, NO_TEXT, NONE, NOWHERE, Ints, dense
from specs.vocabulary import Kind, Outcome, Queue


def kernel(rows: Rows, findings: Findings) -> None:
    """Only lanes of which somebody has read the floor are looked at."""
    answered = rows.ended_as(Outcome.OK) & (rows.end < NEVER) & (rows.group != NO_TEXT)
    reads = np.flatnonzero(rows.are(Kind.PROGRESS) & answered & (rows.value != NONE))
    about = (rows.offset != NONE) & np.isin(rows.lane, rows.lane[reads])
    handed = np.flatnonzero(rows.are(Kind.RECEIVE) & answered & about)
    if not len(handed):
        return
    finishing = rows.are(Kind.ACK, Kind.DEAD_LETTER) & ~rows.ended_as(Outcome.REFUSED) & about
    finishes = np.flatnonzero(finishing)
    where = np.concatenate([handed, finishes])
    message, count = dense(rows.lane[where], rows.offset[where])
    first, over = np.full(count, NOWHERE, np.int64), np.full(count, NEVER, np.int64)
    np.minimum.at(over, message[len(handed) :], rows.begin[finishes])
    last_time = _is_last_time(rows, handed)
    np.minimum.at(over, message[: len(handed)][last_time], rows.end[handed[last_time]])
    in_turn = np.argsort(-rows.end[handed], kind="stable")
    first[message[: len(handed)][in_turn]] = handed[in_turn]  # the earliest is written last
    first_end = np.where(first != NOWHERE, rows.end[first], NEVER)
    _judge(rows, findings, reads, first[first_end < over], over[first_end < over])


def _is_last_time(rows: Rows, handed: Ints) -> Ints:
    """Which hand-outs were as many as there may be of the message."""
    times = rows.number("reconsume_times")[handed]
    limits = [rows.context_of(int(place)).info.config.max_reconsume_times for place in handed[:1]]
    if len(rows.words("run")) > 1:
        limits = [rows.context_of(int(place)).info.config.max_reconsume_times for place in handed]
    limit = np.asarray(limits, np.int64)
    found: Ints = np.flatnonzero((limit >= 0) & ((times == NONE) | (times >= limit)))
    return found


def _judge(rows: Rows, findings: Findings, reads: Ints, first: Ints, over: Ints) -> None:
    """first: where each message was first handed out; over: the seq from which it may be finished."""
    for lane in np.unique(rows.lane[first]).tolist():
        mine = np.flatnonzero(rows.lane[first] == lane)
        its_reads = reads[rows.lane[reads] == lane]
        its_reads = its_reads[np.argsort(rows.end[its_reads], kind="stable")]
        until = over[mine].copy()
        for index, one in enumerate(mine.tolist()):
            passed = _passed(rows, its_reads, int(first[one]), int(over[one]))
            if passed is not None:
                findings.violation([int(first[one]), passed])
                until[index] = rows.end[passed] + 1  # it is told once
        since, until = np.sort(rows.end[first[mine]]), np.sort(until)
        at = rows.end[its_reads]
        is_open = np.searchsorted(since, at, "left") > np.searchsorted(until, at, "right")
        findings.at_stake(its_reads[is_open])


def _passed(rows: Rows, reads: Ints, handed: int, over: int) -> int | None:
    """The first reading beyond the message, between its hand-out and its end."""
    beyond = rows.value[reads] > rows.offset[handed]
    after = rows.begin[reads] > rows.end[handed]
    found = reads[beyond & after & (rows.end[reads] < over)]
    if not len(found):
        return None
    read = int(found[0])
    names = (rows.name_of("topic", read), rows.name_of("broker", read))
    queue = Queue(*names, int(rows.number("queue_id")[read]))
    kept_from = rows.context_of(read).kept_from(queue, int(rows.end[read]))
    return read if rows.offset[handed] >= kept_from else None


TWIN = Twin("FLR-1", ("queue_offset", "reconsume_times", "value"), kernel)
find = TWIN.find


# ---- what breaks the clause, planted


def floor_passes(trace: Trace) -> Changes:
    for row in planting.handed_out(trace):
        yield partial(lambda a: planting.reading_after(trace, a, (a.queue_offset or 0) + 1), row)


def floor_reaches(trace: Trace) -> Changes:
    for row in planting.handed_out(trace):
        yield partial(lambda a: planting.reading_after(trace, a, a.queue_offset or 0), row)


DEFECTS = (
    Mutant(
        "floor-passes-unfinished",
        "FLR-1",
        "the store tells a floor beyond a message that somebody works on",
        floor_passes,
        generated=False,
        consumed=LEASED,
    ),
)

LOOKALIKES = (
    Mutant(
        "floor-at-unfinished",
        None,
        "the store tells the message that somebody works on as the floor",
        floor_reaches,
        generated=False,
        consumed=LEASED,
    ),
)
