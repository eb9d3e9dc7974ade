"""What is gone: from when on nothing lies any more for a group at an offset of a queue.

Somebody says so: a TRIM of the queue, of all that lies below the offset that it keeps, from its begin on; and the
answer to a pull of the group that was told to go on further ahead (`specs.facts.pulls`), of all that lies below that. A
log that records neither says nothing about it, and is read as if all had been kept.
"""

import numpy as np

from specs.facts.columns import NEVER, NONE, Ints
from specs.facts.pulls import told_ahead
from specs.facts.rows import Rows
from specs.facts.segments import Timeline, chosen, first_above, highest_so_far, ints


def gone_from(rows: Rows, where: Ints) -> Ints:
    """From which moment (a seq) on the offset of each of these rows is known to be gone; NEVER where nobody says so."""
    found = np.full(len(where), NEVER, np.int64)
    lane, floor, moment = rows.shared(_told, "end")
    if not len(lane) or not len(where):
        return found
    place = first_above(lane, floor, rows.lane[where], rows.offset[where])
    inside = place < len(lane)
    inside[inside] &= lane[place[inside]] == rows.lane[where][inside]
    found[inside] = moment[place[inside]]
    return found


def floor_before(rows: Rows, lane: Ints, moment: Ints) -> Ints:
    """Of each lane the highest offset below which nothing lies, as is told, or will be of pulls under way; else 0."""
    of, floor, told = rows.shared(_told, "begin")
    last = Timeline(of, told).last_before(lane, moment)
    return chosen(floor, last, 0)


def kept_from(rows: Rows, where: Ints) -> Ints:
    """The offset of the queue of each of these rows below which the broker had said, as it began, to keep nothing."""
    found = np.zeros(len(where), np.int64)
    if any(context.trims for context in rows.runs.values()):
        for index, row in enumerate(where.tolist()):
            queue, now = rows.queue_of(row), int(rows.begin[row])
            found[index] = rows.context_of(row).kept_from(queue, now)
    return found


def _told(rows: Rows, moment_of: str) -> tuple[Ints, Ints, Ints]:
    """What was told, by lane and moment (a pull's begin or end): the lane, the lowest offset kept, the moment."""
    pulls = rows.shared(told_ahead)
    told = np.stack([rows.lane[pulls], rows.value[pulls], getattr(rows, moment_of)[pulls]])
    told = np.concatenate([told, ints(_trims(rows)).reshape(-1, 3).T], axis=1)
    lane, floor, moment = told[:, np.lexsort((told[2], told[0]))]
    return lane, floor[highest_so_far(lane, floor)], moment


def _trims(rows: Rows) -> list[tuple[int, int, int]]:
    """(lane, what is kept, from when on) of the TRIM rows, which the context of a run knows."""
    if not any(context.trims for context in rows.runs.values()):
        return []
    found: list[tuple[int, int, int]] = []
    _, firsts = np.unique(rows.lane, return_index=True)
    for place in firsts[rows.number("queue_id")[firsts] != NONE].tolist():
        told = rows.context_of(place).trims.get(rows.queue_of(place), ())
        found += [(int(rows.lane[place]), kept, seq) for seq, kept in told]
    return found
