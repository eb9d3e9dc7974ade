"""An exhausted message reaches the group's dead letters within the bound.

(a) A message whose dead letter was acknowledged is found when the group's dead-letter queues are read afterwards. As in
SND-1, an acknowledgement with a code from 10 to 12 (stored, but not flushed or replicated in time) promises less. (b) A
message that was delivered for the last time allowed, in vain, and was then passed by (the incarnation went on to a
higher offset in a later call) without any dead letter being sent, is found there too, or else it is gone. A message
that lies at two places of the topic, and was given up at both, is to be found twice. Decided by the final drain: every
queue of `%DLQ%` + group that the history shows must have been read to its end by a read that began at least the bound
later, in which no broker of these queues stood still; a read that failed decides nothing. What an earlier drain had
found at or beyond the end that the last one of its queue tells is gone. A queue is shown by a READ, by whoever adds it
as a lane, and by a TRIM; where calls take dead letters and nobody has added a lane of them, nobody knows of which
queue, and nothing is said. A drain's READ rows of that topic name the group. A copy is known by the id of its origin,
or by its own where it kept that of its message and names as its origin none that was given up. One that has neither may
be any that is missed: as many of those, the first ones, are passed over as there are such copies, whoever wrote them.
In an open world there may be dead-letter queues that nobody read, of brokers that nobody named: what is not found there
is at most possibly lost. (b) needs the auto mode and a limit. A dead letter that was begun before the broker removed
some of the group's dead letters on purpose, and is not found afterwards, may have been one of them, unless it was too
young for that (`keep_ms`, but not where a fault had filled that broker's disk); what was begun later lies above the
announced minimum.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import DRAINED, NOT_REMOVED, NOTHING_TAKEN_BACK, ORDERLY
from specs.clauses.rows import ended_before, is_copy_topic, may_be_manual, over_us
from specs.clauses.stored import STORED_WEAKLY
from specs.clauses.words import MS, at, ms, who
from specs.history.row import Row
from specs.vocabulary import (
    DLQ_PREFIX,
    LISTENER_SUSPENDS,
    Key,
    Kind,
    Outcome,
    Party,
    dead_letter_topic,
)

ID = "DLQ-1"
TITLE = "an exhausted message reaches the dead letters"
STATEMENT = "An exhausted message reaches its group's dead-letter queue within the bound."
PARTY = Party.PAIR
KEY = Key.GROUP
PREMISE = (ORDERLY, DRAINED, NOT_REMOVED, NOTHING_TAKEN_BACK)
SOURCES = ("docs/sources.md#dead-letters",)
KINDS = frozenset({Kind.DEAD_LETTER, Kind.READ, Kind.DELIVER, Kind.ADD})
SETTINGS = ("max_reconsume_times",)
NEEDS = frozenset({Kind.READ})
EXCUSED_BY = frozenset({Kind.CRASH, Kind.RESET})
CONCLUDES_FROM_ABSENCE = True


def wants(row: Row) -> bool:
    """Of what is read, only dead letters."""
    return row.kind is not Kind.READ or (row.topic or "").startswith(DLQ_PREFIX)


@dataclass(frozen=True, slots=True)
class NotFound(Finding):
    """given_up: its acknowledged dead letter."""

    given_up: Row
    drained: Row


@dataclass(frozen=True, slots=True)
class PassedBy(Finding):
    """last: its last delivery. passed: the delivery that passed it by."""

    last: Row
    passed: Row
    drained: Row


_Lane = tuple[str | None, str | None, int | None, str | None]
_Place = tuple[str | None, str | None, int | None, int | None]


def _place_of(row: Row) -> _Place:
    return (row.topic, row.broker, row.queue_id, row.queue_offset)


class GroupJudge(Judge):
    """Remembers the messages given up, and what was read of the group's dead letters."""

    __slots__ = (
        "exhausted",
        "known",
        "markers",
        "own",
        "passed",
        "read",
        "sent",
        "unnamed",
        "weak",
    )

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.sent: dict[
            str, dict[_Place, Row]
        ] = {}  # message → place → its first acknowledged dead letter
        self.weak: set[_Place] = set()  # where messages lie of which the dead letter may be lost
        # lane and incarnation → offset → the delivery after which it must be given up
        self.exhausted: dict[_Lane, dict[int, Row]] = {}
        # place and incarnation → its last delivery, the delivery that passed it by
        self.passed: dict[tuple[_Place, str], tuple[Row, Row]] = {}
        self.read: dict[
            str, dict[_Place, int]
        ] = {}  # message → where it lies → where in the history it was last read
        # by its own id, where it names another as its origin: where a copy lies, of which origin, and likewise
        self.own: dict[str, dict[_Place, tuple[str, int]]] = {}
        self.known: set[str] = (
            set()
        )  # messages that were exhausted, or that somebody tried to give up
        self.unnamed: dict[
            str, set[_Place]
        ] = {}  # by their own id, if any: where copies lie that name no origin
        self.markers: dict[
            tuple[str | None, int | None], Row | None
        ] = {}  # queue → the last read to its end

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.DEAD_LETTER and row.source_id is not None:
            self.known.add(row.source_id)
        if row.kind is Kind.READ or row.incarnation is None:
            return NOTHING
        lane = (row.topic, row.broker, row.queue_id, row.incarnation)
        if row.kind is Kind.ADD:
            self.exhausted.pop(lane, None)
            return NOTHING
        offset = row.queue_offset
        if offset is None:
            return NOTHING
        self.passed.pop((_place_of(row), row.incarnation), None)
        waiting = self.exhausted.get(lane)
        if not waiting:
            return NOTHING
        waiting.pop(offset, None)
        if row.kind is Kind.DELIVER:
            for each in [
                each
                for each, before in waiting.items()
                if each < offset and before.op_id != row.op_id
            ]:
                before = waiting.pop(each)
                if before.source_id is not None and row.lane not in self.context.resets:
                    self.passed.setdefault((_place_of(before), row.incarnation), (before, row))
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.DELIVER:
            if self._is_exhausted(row) and row.queue_offset is not None:
                lane = (row.topic, row.broker, row.queue_id, row.incarnation)
                self.exhausted.setdefault(lane, {})[row.queue_offset] = row
                if row.source_id is not None:
                    self.known.add(row.source_id)
            return NOTHING
        source = row.source_id
        if row.kind is Kind.READ:
            queue = (row.broker, row.queue_id)
            if source is None and row.queue_offset is None:
                self.markers[queue] = row
            else:
                self.markers.setdefault(queue, None)
                if source is not None and row.outcome is Outcome.OK:
                    self.read.setdefault(source, {})[_place_of(row)] = row.seq_begin
                    if row.message_id is not None and row.message_id != source:
                        kept = self.own.setdefault(row.message_id, {})
                        kept[_place_of(row)] = (source, row.seq_begin)
                if row.origin_id is None and row.outcome is Outcome.OK:
                    self.unnamed.setdefault(source or "", set()).add(_place_of(row))
        elif row.kind is Kind.DEAD_LETTER and row.outcome is Outcome.OK and source is not None:
            if row.code in STORED_WEAKLY:
                self.weak.add(_place_of(row))
                return NOTHING
            self.sent.setdefault(source, {}).setdefault(_place_of(row), row)
        return NOTHING

    def _is_exhausted(self, row: Row) -> bool:
        limit, times = self.config.max_reconsume_times, row.reconsume_times
        if (
            limit < 0
            or row.outcome not in LISTENER_SUSPENDS
            or may_be_manual(row)
            or is_copy_topic(row.topic)
        ):
            return False
        return times is not None and times >= limit

    def finish(self) -> Iterable[Finding]:
        markers = [
            marker
            for marker in self.markers.values()
            if marker is not None and marker.outcome is Outcome.OK
        ]
        if not markers or len(markers) < len(self.markers):
            return NOTHING
        if self._may_lie_elsewhere(markers[0]):
            return NOTHING
        first = min(markers, key=lambda marker: marker.seq_begin)
        last = max(markers, key=lambda marker: marker.seq_begin)
        missed: list[tuple[Row, Row | None]] = []
        for source, given_up in self._due(first).items():
            given_up.sort(key=lambda pair: pair[0].seq_begin)
            copies = sum(1 for seq in self._lies(source) if seq >= given_up[0][0].seq_begin)
            for index, (row, passed) in enumerate(given_up):
                if index < copies:
                    self.opportunities += 1
                elif not self._may_be_removed(row, last):
                    missed.append((row, passed))
        missed.sort(key=lambda pair: pair[0].seq_begin)
        missed = missed[self._may_be_any() :]
        self.opportunities += len(missed)
        return [
            NotFound(row, last) if passed is None else PassedBy(row, passed, last)
            for row, passed in missed
        ]

    def _may_lie_elsewhere(self, marker: Row) -> bool:
        """Does the history show a queue of these dead letters that nobody read, or calls that took some from one?"""
        topic = dead_letter_topic(marker.group or "")
        shown = {(queue.broker, queue.queue_id) for queue in self.context.queues_of(topic)}
        read = {(broker or "", -1 if number is None else number) for broker, number in self.markers}
        taken = (marker.run, topic) in self.context.delivered
        added = any(lane[1] == topic for lanes in self.context.lanes.values() for lane in lanes)
        return not shown <= read or (taken and not added)

    def _lies(self, source: str) -> Iterable[int]:
        """When each copy of the message was read that is not gone since, by where it lies."""
        kept = self.own.get(source, {}).items()
        lies = {
            **self.read.get(source, {}),
            **{place: seq for place, (origin, seq) in kept if origin not in self.known},
        }
        return [seq for place, seq in lies.items() if not self._is_gone(place, seq)]

    def _is_gone(self, place: _Place, seq: int) -> bool:
        """Was it read before the last reading of its queue began, and lies at or beyond the end that this one tells?"""
        marker = self.markers.get((place[1], place[2]))
        if marker is None or marker.value is None or place[3] is None:
            return False
        return seq < marker.seq_begin and place[3] >= marker.value

    def _may_be_any(self) -> int:
        """How many of the copies that were read have an id of their own, or none, and name no origin?"""
        return sum(len(lie) for id_, lie in self.unnamed.items() if id_ not in self.known)

    def _due(self, first: Row) -> dict[str, list[tuple[Row, Row | None]]]:
        """By message, what was given up or passed by long enough before the reading began, once for each place."""
        bound_us = self.config.dead_letter_bound_ms * MS + self.context.info.clock_bound_us
        due: dict[str, list[tuple[Row, Row | None]]] = {}
        for source, letters in self.sent.items():
            for row in letters.values():
                if ended_before(row, first) and self._run_us(over_us(row), first) >= bound_us:
                    due.setdefault(source, []).append((row, None))
        earliest: dict[_Place, tuple[Row, Row]] = {}
        for (place, _), pair in self.passed.items():
            if place not in earliest or pair[1].seq_begin < earliest[place][1].seq_begin:
                earliest[place] = pair
        for place, (row, passed) in earliest.items():
            source = row.source_id or ""
            is_over = (
                first.seq_begin >= passed.seq_begin
                and self._run_us(passed.started_us, first) >= bound_us
            )
            if is_over and place not in self.sent.get(source, {}) and place not in self.weak:
                due.setdefault(source, []).append((row, passed))
        return due

    def _run_us(self, since_us: int, first: Row) -> int:
        """How long each of the brokers has run at least, from then until the reading began."""
        now_us, brokers = first.started_us, {broker for broker, _ in self.markers}
        stood = (self.context.stood_us(broker, since_us, now_us) for broker in brokers)
        return now_us - since_us - max(stood)

    def _may_be_removed(self, row: Row, last: Row) -> bool:
        """Did the broker remove some of the group's dead letters on purpose, between it and the end of the reading?"""
        trims = self.context.trims.get(dead_letter_topic(row.group or ""), ())
        return any(
            row.seq_begin < trim.seq_begin <= (last.seq_end or 0)
            and not self._is_too_young(row, trim)
            for trim in trims
        )

    def _is_too_young(self, row: Row, trim: Row) -> bool:
        """Was the dead letter certainly younger, when the broker removed something, than it keeps everything?"""
        any_age = self.context.clock_stepped is not None or self.context.is_crowded(trim.broker)
        if not self.config.keep_ms or any_age:
            return False
        return (
            trim.started_us - row.started_us + self.context.info.clock_bound_us
            < self.config.keep_ms * MS
        )


judge = GroupJudge


def explain(found: NotFound | PassedBy) -> str:
    row, drained = found.last if isinstance(found, PassedBy) else found.given_up, found.drained
    message = f"message {row.source_id} (offset {row.queue_offset} of {row.lane})"
    missing = f"its dead letter was not among the {drained.value} that were read at {at(drained)}"
    if isinstance(found, NotFound):
        later = ms(drained.started_us - over_us(row))
        return f"{who(row)} gave up {message} at {at(row)} and was told that it is stored; {later} later {missing}"
    return (
        f"{message} had its last delivery at {at(row)} (retry {row.reconsume_times}, {row.outcome}) and {who(row)} "
        f"went on to offset {found.passed.queue_offset} at {at(found.passed)} without giving it up; {missing}"
    )
