"""ORD-8 over columns: the offsets read under each marker, sorted, and the steps between them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.clauses.rows import is_copy_topic
from specs.facts.findings import Findings
from specs.facts.rows import Rows
from specs.facts.segments import NEVER, NO_TEXT, NONE, Ints, by_time
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome


def kernel(rows: Rows, findings: Findings) -> None:
    named = rows.text("message_id") != NO_TEXT
    read, ok = rows.are(Kind.READ), rows.ended_as(Outcome.OK)
    has_offset = rows.offset != NONE
    markers = np.flatnonzero(read & ~has_offset & ~named)
    found = np.flatnonzero(read & has_offset & ok & (rows.end < NEVER))
    found = found[by_time(rows.queue[found], rows.end[found])]
    reads = np.flatnonzero(read & (has_offset | named))
    queue = rows.queue[found]
    for each in np.unique(rows.queue[markers]).tolist():
        mine = markers[rows.queue[markers] == each]
        low, high = np.searchsorted(queue, [each, each + 1])
        for marker in mine[
            ok[mine] & (rows.end[mine] < NEVER) & (rows.value[mine] != NONE)
        ].tolist():
            if not _disturbed(rows, marker, mine):
                unread = _unread(rows, marker, reads[rows.queue[reads] == each])
                _judge(rows, findings, marker, found[low:high], unread)


def _disturbed(rows: Rows, marker: int, markers: Ints) -> bool:
    """Did another drain of the queue overlap with this one, or had the broker crashed before it ended?"""
    begin, end = rows.begin[marker], rows.end[marker]
    overlaps = (rows.begin[markers] <= end) & (rows.end[markers] >= begin)
    broker = rows.text("broker")[marker]
    died = rows.context_of(marker).deaths_of(rows.words("broker")[broker] if broker >= 0 else "")
    return int(overlaps.sum()) > 1 or any(seq < end for seq in died)


def _unread(rows: Rows, marker: int, reads: Ints) -> Ints:
    """Of the queue's reads, those of the drain that failed, and those that were under way as it ended."""
    begin, end = rows.begin[marker], rows.end[marker]
    late = (rows.begin[reads] > begin) & (rows.begin[reads] < end) & (rows.end[reads] > end)
    failed = ~rows.ended_as(Outcome.OK)[reads] & (rows.end[reads] > begin) & (rows.end[reads] < end)
    found: Ints = reads[late | failed]
    return found


def _judge(rows: Rows, findings: Findings, marker: int, reads: Ints, failed: Ints) -> None:
    """reads: of the queue, by their ends. Of several at one offset the last counts. failed: reads that were not."""
    if (rows.offset[failed] == NONE).any():
        return
    ends = rows.end[reads]
    low, high = np.searchsorted(ends, [rows.begin[marker], rows.end[marker]])
    reads = reads[low:high][::-1]
    offsets, first = np.unique(rows.offset[reads], return_index=True)
    place = reads[first]
    steps = np.diff(offsets)
    unread = np.sort(rows.offset[failed])
    between = np.searchsorted(unread, offsets[1:], side="left") - np.searchsorted(
        unread, offsets[:-1], side="right"
    )
    kept_from = rows.context_of(marker).kept_from(rows.queue_of(marker), int(rows.end[marker]))
    gone = offsets[1:] <= kept_from  # whatever lies between was removed on purpose
    open_ = (steps > 1) & ((between > 0) | gone) if len(steps) else np.zeros(0, np.bool_)
    findings.at_stake_times(marker, int((~open_).sum()))
    holes = np.flatnonzero((steps > 1) & ~open_)
    findings.violated(place[holes], place[holes + 1], np.full(len(holes), marker))


TWIN = Twin("ORD-8", ("message_id", "queue_offset", "outcome", "value"), kernel)
find = TWIN.find


# ---- what breaks the clause, planted


def hole_between(trace: Trace) -> Changes:
    found: dict[Any, list[Row]] = {}
    for row in trace.of(Kind.READ):
        if not is_copy_topic(row.topic):
            found.setdefault(row.queue, []).append(row)
    died = {row.broker for row in trace.of(Kind.CRASH)}
    for rows in found.values():
        marker, *reads = rows
        if (
            marker.queue_offset is None
            and marker.outcome is Outcome.OK
            and marker.broker not in died
        ):
            for below, gone, above in zip(reads, reads[1:], reads[2:], strict=False):
                about = (below.seq_begin, above.seq_begin)
                yield partial(lambda g, a: trace.without([g], a), gone.seq_begin, about)


DEFECTS = (
    Mutant("hole-between", "ORD-8", "a message between two others is missing", hole_between),
)
