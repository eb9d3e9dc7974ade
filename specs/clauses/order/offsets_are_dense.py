"""The offsets of a queue follow each other without a hole.

Decided by a drain, which reads a queue to its end: between two messages that it found lies no offset without one.
What lies before the first one found may have been removed long ago; whether something is missing behind the last one
is for SND-1 to say. A read that failed, or that had not ended when the drain did, leaves it open what lies there: a
hole beside it is none, and one that names no offset leaves the whole drain open. A drain that overlaps with another
one of the same queue is not judged, nor is a queue whose broker had crashed before: the promise is one of an epoch.
What the broker says to have removed by the end of the drain may have gone while it read, and is no hole: below the
announced minimum nothing is claimed.
"""

import numpy as np

from specs.clauses.premises import BROKER_LIVES, DRAINED, Premise
from specs.clauses.terms import Finding, Findings, Row, Rows, at
from specs.facts.columns import NEVER, NO_TEXT, NONE, Ints
from specs.facts.segments import by_time, positions
from specs.plan.traits import Stake, Trait
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "ORD-8"
TITLE = "offsets are dense"
STATEMENT = "Within a broker epoch, the offsets of a queue follow each other without a hole."
PARTY = Party.BROKER
KEY = Key.QUEUE
PREMISE = (
    DRAINED,
    BROKER_LIVES,
    Premise(
        "kept",
        "nothing compacts the queue; below the minimum that is announced when a drain ends nothing is claimed",
        told_by=frozenset({Kind.TRIM}),
    ),
)
SOURCES = ("docs/sources.md#store",)
RULES = ("WIR-5",)
STAKES = (Stake(Trait.LIVING_BROKER),)
KINDS = frozenset({Kind.READ})
NEEDS = frozenset({Kind.READ})
LOOKS_BACK = True
COLUMNS = ("message_id", "queue_offset", "outcome", "value")


class Hole(Finding):
    below: Row
    above: Row
    reading: Row


def judge(rows: Rows, findings: Findings) -> None:
    named, has_offset = rows.text("message_id") != NO_TEXT, rows.offset != NONE
    read, told = rows.are(Kind.READ), rows.ended_as(Outcome.OK) & (rows.end < NEVER)
    markers = positions(read & ~has_offset & ~named)
    found = positions(read & has_offset & told)
    found = found[by_time(rows.queue[found], rows.end[found])]
    reads = positions(read & (has_offset | named))
    for marker in markers[told[markers] & (rows.value[markers] != NONE)].tolist():
        queue = rows.queue[marker]
        if not _disturbed(rows, marker, markers[rows.queue[markers] == queue]):
            low, high = np.searchsorted(rows.queue[found], [queue, queue + 1])
            unread = _unread(rows, marker, reads[rows.queue[reads] == queue])
            _judge(rows, findings, marker, found[low:high], unread)


def _disturbed(rows: Rows, marker: int, markers: Ints) -> bool:
    """Did another drain of the queue overlap with this one, or had the broker crashed before it ended?"""
    begin, end = rows.begin[marker], rows.end[marker]
    overlaps = (rows.begin[markers] <= end) & (rows.end[markers] >= begin)
    died = rows.context_of(marker).deaths_of(rows.name_of("broker", marker))
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
    reading = np.full(len(holes), marker)
    findings.broken(Hole, below=place[holes], above=place[holes + 1], reading=reading)


def explain(found: Hole) -> str:
    below, above, reading = found.below, found.above, found.reading
    return (
        f"when {reading.queue} was read up to {reading.value} at {at(reading)}, nothing lay between offsets "
        f"{below.queue_offset} and {above.queue_offset}"
    )
