"""An exhausted message reaches the group's dead letters within the bound.

(a) A message whose dead letter was acknowledged is found when the group's dead-letter queues are read afterwards.
(b) A message that was delivered for the last time allowed, in vain, and was then passed by (the incarnation went
on to a higher offset) without any dead letter being sent, is found there too, or else it is gone.
Decided by the final drain: every queue of `%DLQ%` + group that the history shows must have been read to its end by
a read that began at least the bound later; a read that failed decides nothing. A drain's READ rows of that topic
name the group. (b) needs the auto mode, one message per call and a limit. A dead letter that was begun before the
broker removed some of the group's dead letters on purpose, and is not found afterwards, may have been one of them;
what was begun later lies above the announced minimum.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.base import (
    BATCH_OF_ONE,
    DRAINED,
    MS,
    NOT_REMOVED,
    NOTHING,
    NOTHING_TAKEN_BACK,
    ORDERLY,
    Context,
    Finding,
    Judge,
    at,
    ended_before,
    is_manual,
    ms,
    who,
)
from specs.history.row import Row
from specs.vocabulary import DLQ_PREFIX, LISTENER_SUSPENDS, RETRY_PREFIX, Key, Kind, Outcome, Party, dead_letter_topic

ID = "DLQ-1"
TITLE = "an exhausted message reaches the dead letters"
STATEMENT = "An exhausted message reaches its group's dead-letter queue within the bound."
PARTY = Party.PAIR
KEY = Key.GROUP
PREMISE = (ORDERLY, DRAINED, BATCH_OF_ONE, NOT_REMOVED, NOTHING_TAKEN_BACK)
SOURCES = ("docs/sources.md#dead-letters",)
KINDS = frozenset({Kind.DEAD_LETTER, Kind.READ, Kind.DELIVER, Kind.ADD})
NEEDS = frozenset({Kind.READ})


def wants(row: Row) -> bool:
    """Of what is read, only dead letters."""
    return row.kind is not Kind.READ or (row.topic or "").startswith(DLQ_PREFIX)


@dataclass(frozen=True, slots=True)
class NotFound(Finding):
    """given_up: its acknowledged dead letter, or its last delivery; passed: the delivery that passed it by."""

    given_up: Row
    passed: Row | None
    drained: Row


_Lane = tuple[str | None, str | None, int | None, str | None]


class GroupJudge(Judge):
    """Remembers the messages given up, and what was read of the group's dead letters."""

    __slots__ = ("exhausted", "markers", "passed", "read", "sent")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.sent: dict[str, Row] = {}  # message → its first acknowledged dead letter
        self.exhausted: dict[_Lane, Row] = {}  # lane and incarnation → the delivery after which it must be given up
        self.passed: dict[str, tuple[Row, Row]] = {}  # message → its last delivery, the delivery that passed it by
        self.read: dict[str, int] = {}  # message → where in the history it was last read
        self.markers: dict[tuple[str | None, int | None], Row | None] = {}  # queue → the last read to its end

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.READ:
            return NOTHING
        if self.exhausted:
            lane = (row.topic, row.broker, row.queue_id, row.incarnation)
            before = self.exhausted.get(lane)
            if before is not None and (row.kind is not Kind.DEAD_LETTER or row.queue_offset == before.queue_offset):
                del self.exhausted[lane]
                went_on = row.kind is Kind.DELIVER and (row.queue_offset or -1) > (before.queue_offset or 0)
                if went_on and before.source_id is not None and row.incarnation is not None:
                    self.passed.setdefault(before.source_id, (before, row))
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.DELIVER:
            if self._is_exhausted(row):
                self.exhausted[(row.topic, row.broker, row.queue_id, row.incarnation)] = row
            return NOTHING
        source = row.source_id
        if row.kind is Kind.READ:
            queue = (row.broker, row.queue_id)
            if source is None and row.queue_offset is None:
                self.markers[queue] = row
            else:
                self.markers.setdefault(queue, None)
                if source is not None and row.outcome is Outcome.OK:
                    self.read[source] = row.seq_begin
        elif row.kind is Kind.DEAD_LETTER and row.outcome is Outcome.OK and source is not None:
            self.sent.setdefault(source, row)
        return NOTHING

    def _is_exhausted(self, row: Row) -> bool:
        limit = self.config.max_reconsume_times
        if limit < 0 or row.outcome not in LISTENER_SUSPENDS or self.config.batch != 1 or is_manual(row):
            return False
        times = row.reconsume_times
        return times is not None and times >= limit and not (row.topic or "").startswith(RETRY_PREFIX)

    def finish(self) -> Iterable[Finding]:
        markers = [marker for marker in self.markers.values() if marker is not None and marker.outcome is Outcome.OK]
        if not markers or len(markers) < len(self.markers):
            return NOTHING
        first = min(markers, key=lambda marker: marker.seq_begin)
        last = max(markers, key=lambda marker: marker.seq_begin)
        bound_us = self.config.dead_letter_bound_ms * MS
        found: list[Finding] = []
        for source, row in self.sent.items():
            if not ended_before(row, first) or first.started_us < (row.ended_us or row.started_us) + bound_us:
                continue
            if self.read.get(source, -1) >= row.seq_begin:
                self.opportunities += 1
            elif not self._may_be_removed(row, last):
                self.opportunities += 1
                found.append(NotFound(row, None, last))
        for source, (row, passed) in self.passed.items():
            if first.seq_begin < passed.seq_begin or first.started_us < passed.started_us + bound_us:
                continue
            if self.read.get(source, -1) >= row.seq_begin:
                self.opportunities += 1
            elif not self._may_be_removed(row, last):
                self.opportunities += 1
                found.append(NotFound(row, passed, last))
        return found

    def _may_be_removed(self, row: Row, last: Row) -> bool:
        """Did the broker remove some of the group's dead letters on purpose, between it and the end of the reading?"""
        trims = self.context.trims.get(dead_letter_topic(row.group or ""), ())
        return any(row.seq_begin < trim.seq_begin <= (last.seq_end or 0) for trim in trims)


judge = GroupJudge


def explain(found: NotFound) -> str:
    row, drained = found.given_up, found.drained
    message = f"message {row.source_id} (offset {row.queue_offset} of {row.lane})"
    missing = f"it was not among the {drained.value} dead letters read at {at(drained)}"
    if found.passed is None:
        later = ms(drained.started_us - (row.ended_us or row.started_us))
        return f"{who(row)} gave up {message} at {at(row)} and was told that it is stored; {later} later {missing}"
    return (
        f"{message} had its last delivery at {at(row)} (retry {row.reconsume_times}, {row.outcome}) and {who(row)} "
        f"went on to offset {found.passed.queue_offset} at {at(found.passed)} without giving it up; {missing}"
    )
