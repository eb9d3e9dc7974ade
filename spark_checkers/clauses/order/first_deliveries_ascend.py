"""ORD-2 over columns: each call beside the highest before it of the same epoch.

An incarnation's epoch begins when the lane is added for it, or with its first call after its client had left and begun
anew; a reset after the epoch's first call ends it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from spark_checkers import planting
from spark_checkers.findings import Findings
from spark_checkers.lanes import may_be_by_hand, may_put_back_unseen_of
from spark_checkers.planting import Changes, Mutant, Planted, Trace
from spark_checkers.rows import Rows
from spark_checkers.segments import (
    NO_TEXT,
    NONE,
    NOWHERE,
    Ints,
    Mask,
    Segments,
    Timeline,
    chosen,
    dense,
    first_of_each,
    is_first,
    positions,
)
from spark_checkers.twin import Twin
from specs.history.row import Row
from specs.vocabulary import CommitMode, Kind, Outcome


def kernel(rows: Rows, findings: Findings) -> None:
    """Calls of an epoch that come for the first time, and below one that came before."""
    named = (rows.text("incarnation") != NO_TEXT) & (rows.group != NO_TEXT)
    adds, resets = positions(named & rows.are(Kind.ADD)), rows.of(Kind.RESET)
    calls = positions(named & rows.are(Kind.DELIVER) & (rows.offset >= 0))
    added = Timeline(rows.incarnation[adds], rows.begin[adds])
    add = chosen(adds, added.last_before(rows.incarnation[calls], rows.begin[calls]), NOWHERE)
    epoch, epochs = dense(rows.incarnation[calls], add)
    epochs = _begun_anew(rows, calls, add, epoch, epochs)
    first = calls[first_of_each(epoch, epochs)[epoch]]
    reset = Timeline(rows.lane[resets], rows.begin[resets])
    reset_us = chosen(
        rows.begin[resets], reset.last_before(rows.lane[calls], rows.begin[calls]), NONE
    )
    watched = reset_us < rows.begin[first]
    calls, add, epoch, first = calls[watched], add[watched], epoch[watched], first[watched]
    offset, of_epoch = rows.offset[calls], Segments(epoch)
    before = chosen(calls, of_epoch.highest_before(offset), NOWHERE)
    in_auto, in_any = _leave_nothing(rows)
    untouched = of_epoch.count_before(_may_put_back(rows)[calls]) == 0
    follows = before != NOWHERE
    above = follows & (offset > rows.offset[before])
    settled = in_auto[first] | (in_any[first] & untouched)
    known = (add != NOWHERE) | settled | (offset >= rows.offset[first])
    broken = follows & ~above & known
    if broken.any():
        same = positions(np.isin(offset, offset[broken]))
        broken[same] &= is_first(epoch[same], offset[same])
    findings.at_stake(calls[above | broken])
    shows = in_auto[before] | (in_any[before] & untouched)
    root = np.where(shows, NOWHERE, np.where(add != NOWHERE, add, first))
    findings.violated(root[broken], before[broken], calls[broken])


def _begun_anew(rows: Rows, calls: Ints, add: Ints, epoch: Ints, epochs: int) -> int:
    """Number epochs anew where the client had left the group and begun again: of these no ADD was seen.

    Returns how many epochs there are.
    """
    left = {
        client
        for context in rows.runs.values()
        for client, states in context.client_state.items()
        if any(kind is Kind.LEAVE for _, kind in states)
    }
    codes = [code for code, name in enumerate(rows.words("client_id")) if name in left]
    if not codes:
        return epochs
    where = positions(np.isin(rows.text("client_id")[calls], codes))
    where = where[np.argsort(epoch[where], kind="stable")]
    for mine in np.split(where, positions(np.diff(epoch[where]) != 0) + 1):
        if not len(mine):
            continue
        root = int(calls[mine[0]] if add[mine[0]] == NOWHERE else add[mine[0]])
        if not _is_of_an_old_life(rows, root, int(calls[mine[-1]])):
            continue
        is_new = False
        for place in mine.tolist():
            if _is_of_an_old_life(rows, root, int(calls[place])):
                root, is_new, epochs = int(calls[place]), True, epochs + 1
            if is_new:
                epoch[place], add[place] = epochs - 1, NOWHERE
    return epochs


def _is_of_an_old_life(rows: Rows, root: int, call: int) -> bool:
    client, group = rows.name_of("client_id", call), rows.name_of("group", call)
    begin, now = int(rows.begin[root]), int(rows.begin[call])
    return rows.context_of(call).is_of_an_old_life(client, group, begin, now)


def _leave_nothing(rows: Rows) -> tuple[Mask, Mask]:
    """Of each call: does it leave nothing below it to come again, for good; and as long as nothing is put back?"""
    mode = rows.text("commit_mode")
    done = rows.ended_as(Outcome.SUCCESS, Outcome.COMMIT)
    in_auto = (done | rows.ended_as(Outcome.ROLLBACK)) & ~may_be_by_hand(rows)
    return in_auto, done & (mode != rows.code("commit_mode", CommitMode.MANUAL))


def _may_put_back(rows: Rows) -> Mask:
    """Of each call: may it put back what was taken, or may nobody have seen that it did?"""
    rolled_back = rows.ended_as(Outcome.ROLLBACK) & may_be_by_hand(rows)
    return may_put_back_unseen_of(rows) | rolled_back


TWIN = Twin("ORD-2", ("client_id", "commit_mode", "incarnation", "queue_offset"), kernel)
find = TWIN.find


# ---- what breaks the clause, planted


def swap_deliveries(trace: Trace) -> Changes:
    for first, second in planting.neighbours(trace):
        if first.sharding_key != second.sharding_key or first.sharding_key is None:
            yield partial(planting.swapped, trace, first, second)


def reset_between(trace: Trace) -> Changes:
    for first, second in planting.neighbours(trace):
        if first.sharding_key is None or first.sharding_key != second.sharding_key:
            yield partial(_reset, trace, first, second)


def _reset(trace: Trace, first: Row, second: Row) -> Planted:
    planted = planting.swapped(trace, first, second)
    unsaid = (
        *planting.MESSAGE,
        "incarnation",
        "client_id",
        "reconsume_times",
        "commit_mode",
        "attempt",
    )
    nobody: dict[str, Any] = dict.fromkeys(unsaid)
    reset = trace.another(
        first, first, 1, kind=Kind.RESET, outcome=Outcome.OK, value=second.queue_offset, **nobody
    )
    return Trace(planted.rows, trace.info).with_more([reset], planted.about)


DEFECTS = (
    Mutant(
        "swap-deliveries",
        "ORD-2",
        "two neighbours are delivered the wrong way round",
        swap_deliveries,
    ),
)

LOOKALIKES = (
    Mutant(
        "reset-between",
        None,
        "an operator reset the offset before the delivery that goes back",
        reset_between,
    ),
)
