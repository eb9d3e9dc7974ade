"""The offsets of a queue follow each other without a hole.

Decided by a drain, which reads a queue to its end: between two messages that it found lies no offset without one.
What lies before the first one found may have been removed long ago; whether something is missing behind the last one
is for SND-1 to say. A read that failed, or that had not ended when the drain did, leaves it open what lies there: a
hole beside it is none, and one that names no offset leaves the whole drain open. A drain that overlaps with another
one of the same queue is not judged, nor is a queue whose broker had crashed before: the promise is one of an epoch.
What the broker says to have removed by the end of the drain may have gone while it read, and is no hole: below the
announced minimum nothing is claimed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import BROKER_LIVES, DRAINED, Premise
from specs.clauses.words import at
from specs.history.row import Row
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


@dataclass(frozen=True, slots=True)
class Hole(Finding):
    below: Row
    above: Row
    reading: Row


class QueueJudge(Judge):
    """Remembers what the drain under way has found."""

    __slots__ = ("failed", "found", "readings", "reads", "void")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.readings: dict[int, Row] = {}  # under way, by their begin
        self.void: set[int] = set()  # of these: they overlap
        self.found: dict[int, Row] = {}
        self.failed: set[int] = set()  # offsets that could not be read
        self.reads: dict[int, Row] = {}  # under way since the drain began, by their begin

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.queue_offset is None and row.message_id is None:
            if self.readings:
                self.void.update(self.readings)
                self.void.add(row.seq_begin)
            else:
                self.found = {}
                self.failed = set()
                self.reads = {}
            self.readings[row.seq_begin] = row
        elif self.readings:
            self.reads[row.seq_begin] = row
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        self.reads.pop(row.seq_begin, None)
        if row.queue_offset is not None:
            if self.readings:
                if row.outcome is Outcome.OK:
                    self.found[row.queue_offset] = row
                else:
                    self.failed.add(row.queue_offset)
            return NOTHING
        if row.message_id is not None:
            if row.outcome is not Outcome.OK:
                self.void.update(self.readings)
            return NOTHING
        del self.readings[row.seq_begin]
        if row.seq_begin in self.void or row.outcome is not Outcome.OK or row.value is None:
            self.void.discard(row.seq_begin)
            return NOTHING
        if (row.broker or "") in self.context.broker_died:
            return NOTHING
        unread = self.failed.union(read.queue_offset for read in self.reads.values())
        if None in unread:
            return NOTHING
        found = self.found
        known = [
            (low, high)
            for low, high in pairwise(sorted(found))
            if high == low + 1
            or not (
                self.context.was_removed(row, high - 1)
                or any(low < (offset or 0) < high for offset in unread)
            )
        ]
        self.opportunities += len(known)
        return [Hole(found[low], found[high], row) for low, high in known if high > low + 1]


judge = QueueJudge


def explain(found: Hole) -> str:
    below, above, reading = found.below, found.above, found.reading
    return (
        f"when {reading.queue} was read up to {reading.value} at {at(reading)}, nothing lay between offsets "
        f"{below.queue_offset} and {above.queue_offset}"
    )
