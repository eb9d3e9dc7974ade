"""Readings of queues, for clauses that ask whether a message is in one without knowing its offset.

Only queues are gone through to which such messages were sent, reading by reading.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from specs.facts.columns import MS, NEVER, NO_TEXT, NONE, Ints
from specs.facts.rows import Rows
from specs.facts.stored import broker_died
from specs.vocabulary import Kind, Outcome

PUT_AGAIN_MS = 10_000
"""After so long a broker tries again what it could not store when its time had come (docs/sources.md#delay)."""
COLUMNS = (
    "op_id",
    "message_id",
    "queue_offset",
    "outcome",
    "value",
    "detail",
    "started_us",
    "ended_us",
)


@dataclass(frozen=True)
class Reading:
    """One whole reading of a queue to its end. marker: its row; shown: of each message id (a code) the reads' ends."""

    marker: int
    shown: dict[int, list[int]]


class Queue:
    """One queue: its rows, of all kinds that the clause looks at."""

    def __init__(self, rows: Rows, where: Ints) -> None:
        self.rows = rows
        self.where = where
        self.ok = rows.ended_as(Outcome.OK) & (rows.end < NEVER)
        reads = where[rows.are(Kind.READ)[where]]
        none = (rows.offset[reads] == NONE) & (rows.text("message_id")[reads] == NO_TEXT)
        self.markers, self.reads = reads[none], reads[~none]

    def readings(self) -> Iterator[Reading]:
        """Those that ended well, and in which every read told what it found; by their ends."""
        rows, reads, message = self.rows, self.reads, self.rows.text("message_id")
        began_at = self._sessions()
        failed = np.where(rows.end[reads] < NEVER, rows.end[reads], rows.begin[reads])
        failed = failed[~self.ok[reads] | (message[reads] == NO_TEXT)]
        good = reads[self.ok[reads] & (message[reads] != NO_TEXT)]
        ends = self.markers[self.ok[self.markers] & (rows.value[self.markers] != NONE)]
        for marker in ends[np.argsort(rows.end[ends], kind="stable")].tolist():
            since, until = began_at[marker], int(rows.end[marker])
            if np.any((failed > since) & (failed < until)):
                continue
            shown: dict[int, list[int]] = {}
            for read in good[(rows.end[good] > since) & (rows.end[good] < until)].tolist():
                shown.setdefault(int(message[read]), []).append(int(rows.end[read]))
            yield Reading(marker, shown)

    def _sessions(self) -> dict[int, int]:
        """Of each marker the begin of the first one of those that overlap: what one reads, another one has seen."""
        found: dict[int, int] = {}
        since, until = NONE, NONE
        for marker in self.markers.tolist():
            begin = int(self.rows.begin[marker])
            if begin > until:
                since = begin
            until = max(until, int(self.rows.end[marker]))
            found[marker] = since
        return found

    def in_time(self, sent: int, due_us: int, marker: int) -> bool:
        """Was a message due, and everybody's slack over, when the reading began? See `slack_us`."""
        rows, context = self.rows, self.rows.context_of(sent)
        now, started, slack = int(rows.end[marker]), int(rows.started[marker]), slack_us(rows, sent)
        if due_us + slack > started:
            return False
        if rows.name_of("detail", marker) == "settled":
            return True
        broker = rows.name_of("broker", sent)
        awake_us = started - slack - PUT_AGAIN_MS * MS
        pauses = context.broker_paused.get(broker, ())
        slept = any(seq <= now and until > awake_us for seq, until in pauses)
        if slept or context.is_crowded(broker, now):
            return False
        if not broker_died(rows, sent, now):
            return True
        answered = self.where[self.ok[self.where] & (rows.end[self.where] <= now)]
        for row in answered[np.argsort(rows.end[answered], kind="stable")].tolist():
            if not broker_died(rows, row, now):  # the first answer since
                return int(rows.ended[row]) + slack <= started
        return False


def slack_us(rows: Rows, place: int) -> int:
    """How late what has its time may be: for a timer, for a request, and for another clock."""
    info = rows.context_of(place).info
    return (info.config.delay_bound_ms + info.config.schedule_slack_ms) * MS + info.clock_bound_us


def queues_with(rows: Rows, sends: Ints, kinds: Iterable[Kind]) -> Iterator[tuple[Queue, Ints]]:
    """The queues that these sends name, with the sends of each.

    kinds: those that the clause looks at. The rows hold more where other clauses are judged beside it, and a client's
    own row, as of an ADD, is no answer of a broker.
    """
    of_clause = rows.are(*kinds)
    for queue in np.unique(rows.queue[sends]).tolist():
        yield (
            Queue(rows, np.flatnonzero(of_clause & (rows.queue == queue))),
            sends[rows.queue[sends] == queue],
        )
