"""PML-4 over columns: hand-outs of each message in the order of their answers, and the highest count before each."""

from __future__ import annotations

from functools import partial

import numpy as np

from spark_checkers import planting
from spark_checkers.planting import LEASED, STRANGER, Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.message_leases import COLUMNS, may_be_cut, requests
from specs.facts.message_names import may_be_any, offsets
from specs.facts.rows import Rows
from specs.facts.segments import NEVER, NO_TEXT, NONE, NOWHERE, Ints, by_time, dense
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome


def kernel(rows: Rows, findings: Findings) -> None:
    """Only hand-outs that are not the first of their message, or that tell of one before, are looked at singly."""
    handed, before, nth = _in_turn(rows)
    told = rows.number("reconsume_times")[handed]
    again = (before != NOWHERE) | (told > 0)
    findings.at_stake(handed[again])
    one_by_one = zip(
        handed[again].tolist(), before[again].tolist(), nth[again].tolist(), strict=True
    )
    for place, highest, seen in one_by_one:
        if highest != NOWHERE and _repeats(rows, highest, place):
            findings.violation([highest, place], name="count-repeats")
            continue
        times = int(rows.number("reconsume_times")[place])
        info = rows.context_of(place).info
        if 0 <= info.config.max_reconsume_times < times:
            findings.violation([place], name="beyond-the-limit")
        elif _runs_ahead(rows, place, seen):
            findings.violation([place], name="count-runs-ahead")


def _in_turn(rows: Rows) -> tuple[Ints, Ints, Ints]:
    """Hand-outs by message and answer: where, the one with the highest count before (-1: none), the number before.

    Those after an acknowledgement that was answered are left out, or that may be of any message.
    """
    answered = rows.ended_as(Outcome.OK) & (rows.end < NEVER) & (rows.group != NO_TEXT)
    of_any = np.flatnonzero(answered & rows.are(Kind.ACK) & may_be_any(rows))
    offset = rows.shared(offsets)
    answered &= offset != NONE
    handed = np.flatnonzero(
        rows.are(Kind.RECEIVE) & answered & (rows.number("reconsume_times") != NONE)
    )
    acks = np.flatnonzero(rows.are(Kind.ACK) & answered)
    if not len(handed):
        nothing = np.empty(0, np.int64)
        return nothing, nothing, nothing
    where = np.concatenate([handed, acks])
    message, count = dense(rows.lane[where], offset[where])
    over = np.full(count, NEVER, np.int64)
    np.minimum.at(over, message[len(handed) :], rows.end[acks])
    mine = message[: len(handed)]
    known = np.full(int(rows.lane.max()) + 1, NEVER, np.int64)
    np.minimum.at(known, rows.lane[of_any], rows.end[of_any])
    in_time = rows.end[handed] < np.minimum(over[mine], known[rows.lane[handed]])
    handed, mine = handed[in_time], mine[in_time]
    order = by_time(mine, rows.end[handed])
    handed, mine = handed[order], mine[order]
    return handed, *_highest_before(rows.number("reconsume_times")[handed], mine, handed)


def _highest_before(told: Ints, message: Ints, handed: Ints) -> tuple[Ints, Ints]:
    """Of each hand-out where the highest count of its message before it was told first, and how many came before."""
    before, nth = np.full(len(told), NOWHERE, np.int64), np.zeros(len(told), np.int64)
    for at in range(1, len(told)):
        if message[at] != message[at - 1]:
            continue
        last = int(before[at - 1])
        rises = last < 0 or told[at - 1] > told[last]
        before[at] = at - 1 if rises else last
        nth[at] = nth[at - 1] + 1
    known = before != NOWHERE
    before[known] = handed[before[known]]
    return before, nth


def _repeats(rows: Rows, highest: int, place: int) -> bool:
    first, second = requests(rows, np.asarray([highest, place], np.int64))
    if second.times > first.times or (second.times < first.times and first.end >= second.begin):
        return False
    party = rows.name_of("client_id", highest), rows.name_of("broker", highest)
    return not may_be_cut(rows.context_of(highest), party, first, second.end)


def _runs_ahead(rows: Rows, place: int, seen: int) -> bool:
    """Does it tell of more than were seen and were lost with answers, while nobody else of the lane asked?"""
    info, now = rows.context_of(place).info, rows.end[place]
    if not info.closed_world or info.begins_late:
        return False
    asked = rows.are(Kind.RECEIVE) & (rows.lane == rows.lane[place]) & (rows.begin < now)
    known = rows.ended_as(Outcome.OK, Outcome.REFUSED)
    lost = np.count_nonzero(asked & ~known & (rows.end < now))
    is_alone = not np.any(asked & (rows.end > now))
    return is_alone and int(rows.number("reconsume_times")[place]) > seen + int(lost)


TWIN = Twin("PML-4", COLUMNS, kernel)
find = TWIN.find


# ---- what breaks the clause, planted


def told_again(trace: Trace) -> Changes:
    for before, row in planting.passed_on(trace):
        yield partial(lambda a, b: _tells(trace, b, a.reconsume_times or 0), before, row)


def told_too_much(trace: Trace) -> Changes:
    for row in planting.handed_out(trace):
        yield partial(lambda a: _tells(trace, a, 1000), row)


def put_back_before(trace: Trace) -> Changes:
    for row in planting.handed_out_once(trace):
        yield partial(lambda a: planting.handed_again(trace, a, STRANGER, released=True), row)


def _tells(trace: Trace, row: Row, times: int) -> planting.Planted:
    return trace.changed({row.seq_begin: {"reconsume_times": times}})


DEFECTS = (
    Mutant(
        "count-told-again",
        "PML-4",
        "a hand-out tells the count of the one before",
        told_again,
        generated=False,
        consumed=LEASED,
    ),
    Mutant(
        "count-too-high",
        "PML-4",
        "a first hand-out tells of many before",
        told_too_much,
        generated=False,
        consumed=LEASED,
    ),
)

LOOKALIKES = (
    Mutant(
        "count-told-once-more",
        None,
        "a message is handed out once more, tells so, and was put back before",
        put_back_before,
        generated=False,
        consumed=LEASED,
    ),
)
