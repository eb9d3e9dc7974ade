"""What is gone: from when on nothing lies any more at an offset of a queue.

Somebody says so: a TRIM of the queue, of all that lies below the offset that it keeps, from its begin on; and a pull
that was refused, or told that its offset had moved, and to go on further ahead, of all that lies below that, from its
answer on. A log that records neither says nothing about it, and is read as if all had been kept.
"""

from __future__ import annotations

import numpy as np

from specs.facts.rows import OFFSET_MOVED, Rows
from specs.facts.segments import (
    NEVER,
    NONE,
    Ints,
    first_above,
    highest_so_far,
    ints,
    positions,
)
from specs.vocabulary import Kind, Outcome


def gone_from(rows: Rows, where: Ints) -> Ints:
    """From which moment (a seq) on the offset of each of these rows is known to be gone; NEVER where nobody says so."""
    found = np.full(len(where), NEVER, np.int64)
    queue, floor, moment = rows.shared(_told)
    if not len(queue) or not len(where):
        return found
    place = first_above(queue, floor, rows.queue[where], rows.offset[where])
    inside = place < len(queue)
    inside[inside] &= queue[place[inside]] == rows.queue[where][inside]
    found[inside] = moment[place[inside]]
    return found


def _told(rows: Rows) -> tuple[Ints, Ints, Ints]:
    """What was told, by queue and moment: (its queue, the lowest offset that was kept by then, the moment)."""
    pulls = _pulls_told_ahead(rows)
    told = [
        *zip(
            rows.queue[pulls].tolist(),
            rows.value[pulls].tolist(),
            rows.end[pulls].tolist(),
            strict=True,
        )
    ]
    told += _trims(rows)
    if not told:
        nothing = np.zeros(0, np.int64)
        return nothing, nothing, nothing
    queue, floor, moment = ints(sorted(told, key=lambda each: (each[0], each[2]))).T
    return queue, floor[highest_so_far(queue, floor)], moment


def _pulls_told_ahead(rows: Rows) -> Ints:
    names = rows.table.column_names
    pulls = rows.are(Kind.PULL)
    if not pulls.any() or "code" not in names or "value" not in names:
        return positions(np.zeros(rows.size, np.bool_))
    answered = pulls & (rows.value != NONE) & (rows.offset != NONE) & (rows.end < NEVER)
    moved = (rows.number("code") == OFFSET_MOVED) | rows.ended_as(Outcome.REFUSED)
    return positions(answered & moved & (rows.value > rows.offset))


def _trims(rows: Rows) -> list[tuple[int, int, int]]:
    """(queue, what is kept, from when on) of the TRIM rows, which the context of a run knows."""
    if not any(context.trims for context in rows.runs.values()):
        return []
    found: list[tuple[int, int, int]] = []
    _, firsts = np.unique(rows.queue, return_index=True)
    for place in firsts.tolist():
        told = rows.context_of(place).trims
        if told and rows.number("queue_id")[place] != NONE:
            number = int(rows.queue[place])
            found += [(number, kept, seq) for seq, kept in told.get(rows.queue_of(place), ())]
    return found
