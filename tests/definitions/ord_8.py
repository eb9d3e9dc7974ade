"""ORD-8: within a broker epoch, the offsets of a queue follow each other without a hole.

Decisions where the page leaves room:

- A drain finds what anybody read of the queue with success, if that read ended while it lasted, whenever it began.
- A read that failed, or did not end in time, leaves its offset open where it ended while the drain lasted, or began
  then and has no end.
- A hole of which the upper part lies at or above the announced minimum is one still.
- "Before" the drain and "by its end" both mean: begun before it ended.
"""

from __future__ import annotations

from itertools import pairwise

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import Kind, Outcome
from tests.definitions.words import (
    Rows,
    before,
    broker_died,
    end_of,
    is_marker,
    of,
    same_queue,
    took_effect,
)


def broken(rows: Rows, config: Config) -> bool:
    return any(
        _has_hole(rows, drain)
        for drain in of(rows, Kind.READ)
        if is_marker(drain)
        and drain.outcome is Outcome.OK
        and drain.value is not None
        and not broker_died(rows, drain.broker, 0, end_of(drain))
        and not any(
            is_marker(other)
            and other is not drain
            and same_queue(other, drain)
            and not before(other, drain)
            and not before(drain, other)
            for other in of(rows, Kind.READ)
        )
    )


def _has_hole(rows: Rows, drain: Row) -> bool:
    reads = [
        read
        for read in of(rows, Kind.READ)
        if not is_marker(read)
        and same_queue(read, drain)
        and not before(drain, read)
        and drain.seq_begin < (read.seq_begin if read.seq_end is None else read.seq_end)
    ]
    failed = {read.queue_offset for read in reads if not _went_well(read, drain)}
    found = sorted(
        {
            read.queue_offset
            for read in reads
            if _went_well(read, drain) and read.queue_offset is not None
        }
    )
    kept_from = max(
        [
            trim.value or 0
            for trim in took_effect(rows, Kind.TRIM)
            if same_queue(trim, drain) and trim.seq_begin < end_of(drain)
        ],
        default=0,
    )
    return None not in failed and any(
        any(place >= kept_from for place in range(low + 1, high))
        and not failed & set(range(low + 1, high))
        for low, high in pairwise(found)
    )


def _went_well(read: Row, drain: Row) -> bool:
    return read.outcome is Outcome.OK and end_of(read) < end_of(drain)
