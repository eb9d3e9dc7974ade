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

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from specs.clauses.judging import Finding
from specs.clauses.premises import DRAINED, NOT_REMOVED, NOTHING_TAKEN_BACK, ORDERLY
from specs.clauses.rows import is_copy_topic, over_us
from specs.clauses.words import at, ms, who
from specs.facts.dead_letters import ONLY_DEAD_READS, dead_reads
from specs.facts.findings import Findings
from specs.facts.lanes import (
    OP_COLUMNS,
    Digest,
    LaneItems,
    Machine,
    Op,
    Stretch,
    may_be_manual,
    run_lane,
)
from specs.facts.rows import Rows
from specs.facts.segments import MS, NEVER, NO_TEXT, NONE, Ints, ints, positions
from specs.facts.stored import STORED_WEAKLY
from specs.history.row import Row
from specs.vocabulary import (
    LISTENER_SUSPENDS,
    Key,
    Kind,
    Lane,
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
ONLY = ONLY_DEAD_READS
EXCUSED_BY = frozenset({Kind.CRASH, Kind.RESET})
CONCLUDES_FROM_ABSENCE = True
COLUMNS = (*OP_COLUMNS, "message_id", "origin_id")


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


Group = tuple[int, int]
"""A run, and a group's name as a code."""
Message = tuple[int, int, int]
"""A group, and the id of a message as a code."""
Place = tuple[int, int, int, int]
"""Where a row's message lies: topic, broker, queue, offset."""
GivenUp = tuple[int, int | None]
"""The row that says it, and the delivery that passed it by where nobody says it."""


def judge(rows: Rows, findings: Findings) -> None:
    """What was given up, or passed by, beside the dead letters that were read: a copy for each of its places."""
    reads = positions(dead_reads(rows) & (rows.group != NO_TEXT) & (rows.end < NEVER))
    if not len(reads):
        return
    drains, names, lanes = _Drains(rows, reads), _Names(rows), _gone_through(rows, findings)
    tried = rows.of(Kind.DEAD_LETTER).tolist() + [op.place for lane in lanes for op in lane.ended]
    known = {names.message(row) for row in tried if rows.source[row] != NO_TEXT}
    lies = _lies(rows, names, reads, known)
    missed: dict[Group, list[GivenUp]] = {}
    for message, given_up in _due(rows, names, drains, lanes).items():
        given_up.sort(key=lambda pair: int(rows.begin[pair[0]]))
        lie = drains.still_found(message, lies.get(message, {}))
        copies = sum(1 for seq in lie if seq >= rows.begin[given_up[0][0]])
        findings.at_stake(ints([row for row, _ in given_up[:copies]]))
        last = drains.of[message[:2]][1]
        missed.setdefault(message[:2], []).extend(
            pair for pair in given_up[copies:] if not _may_be_removed(rows, pair[0], last)
        )
    may_be_any = _may_be_any(rows, names, reads, known)
    for group, all_missed in missed.items():
        all_missed.sort(key=lambda pair: int(rows.begin[pair[0]]))
        drained = drains.of[group][1]
        for row, passed in all_missed[may_be_any[group] :]:
            findings.at_stake_times(row, 1)
            if passed is None:
                findings.shown(NotFound, {"given_up": row, "drained": drained})
            else:
                findings.shown(PassedBy, {"last": row, "passed": passed, "drained": drained})


def pick(rows: Rows) -> Ints:
    """Dead letters, and of whole lanes few of the deliveries and adds.

    Judged with these alone it finds the same: every delivery that exhausts its message is there, and what came next.
    """
    lanes = _gone_through(rows, Findings(rows, ID))
    places = [op.place for lane in lanes for op in (*lane.ended, *lane.next)]
    letters = positions(rows.are(Kind.DEAD_LETTER) | dead_reads(rows))
    return np.union1d(ints(places), letters)


class _Lane(Machine):
    """Deliveries after which a message must be given up, and what passed them by.

    exhausted: by incarnation and offset, those after which nothing came yet. passed: by offset and incarnation, a last
    delivery and the delivery that passed it by. ended: every delivery that exhausted its message. next: what changed
    something about one.
    """

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        copies = is_copy_topic(lane.topic)
        self.limit = -1 if copies else self.config.max_reconsume_times
        number = int(findings.rows.number("queue_id")[lane.place])
        name = Lane(lane.group, lane.topic, lane.broker, -1 if number == NONE else number)
        self.reset = self.context.resets.get(name, NEVER)
        self.exhausted: dict[int, dict[int, Op]] = {}
        self.passed: dict[tuple[int, int], tuple[Op, Op]] = {}
        self.ended: list[Op] = []
        self.next: list[Op] = []

    def takes(self, stretch: Stretch) -> bool:
        name = stretch.first.incarnation
        known = [
            *self.exhausted.get(name, ()),
            *(offset for offset, of in self.passed if of == name),
        ]
        if any(stretch.first.offset <= offset < stretch.stop for offset in known):
            return False
        self.begins(stretch.first)
        return True

    def begins(self, op: Op) -> None:
        if op.incarnation == NO_TEXT:
            return
        if op.kind is Kind.ADD:
            if self.exhausted.pop(op.incarnation, None):
                self.next.append(op)
            return
        if op.offset < 0:
            return
        waiting = self.exhausted.get(op.incarnation, {})
        known = self.passed.pop((op.offset, op.incarnation), None), waiting.pop(op.offset, None)
        gone = []
        if op.kind is Kind.DELIVER:
            gone = [
                offset
                for offset, before in waiting.items()
                if offset < op.offset and before.op != op.op
            ]
        for offset in gone:
            before = waiting.pop(offset)
            if self.now <= self.reset:
                self.passed[offset, op.incarnation] = (before, op)
        if gone or any(known):
            self.next.append(op)

    def ends(self, op: Op) -> None:
        in_vain = op.outcome in LISTENER_SUSPENDS and not may_be_manual(op)
        in_vain = in_vain and op.kind is Kind.DELIVER
        if in_vain and op.offset >= 0 and 0 <= self.limit <= op.reconsume:
            self.ended.append(op)
            if op.incarnation != NO_TEXT:
                self.exhausted.setdefault(op.incarnation, {})[op.offset] = op


def _gone_through(rows: Rows, findings: Findings) -> list[_Lane]:
    """All lanes, with what each passed by."""
    states = []
    for lane in rows.shared(Digest).lanes(KINDS - {Kind.READ}):
        state = _Lane(lane, findings)
        run_lane(state, lane, NEVER)
        states.append(state)
    return states


class _Names:
    """What the message of a row is called, and where it lies."""

    def __init__(self, rows: Rows) -> None:
        self._message = rows.run, rows.group, rows.source
        self._place = rows.text("topic"), rows.text("broker"), rows.number("queue_id"), rows.offset

    def message(self, row: int) -> Message:
        run, group, source = (int(column[row]) for column in self._message)
        return run, group, source

    def place(self, row: int) -> Place:
        topic, broker, queue_id, offset = (int(column[row]) for column in self._place)
        return topic, broker, queue_id, offset


class _Drains:
    """Of each group the first and the last of the latest readings of its dead-letter queues, if all are good.

    told: of each queue (its group, broker and number), when its latest reading began, and the end that it tells (NEVER:
    none). stands: of each group, when each broker of these queues stood still.
    """

    def __init__(self, rows: Rows, reads: Ints) -> None:
        self.rows = rows
        self.of: dict[Group, tuple[int, int]] = {}
        self.told: dict[tuple[int, int, int, int], tuple[int, int]] = {}
        self.stands: dict[Group, list[list[tuple[int, int]]]] = {}
        queue = rows.run, rows.group, rows.text("broker"), rows.number("queue_id")
        is_marker = (rows.source == NO_TEXT) & (rows.offset == NONE)
        latest: dict[tuple[int, int, int, int], int | None] = {}
        for row in reads[np.argsort(rows.end[reads], kind="stable")].tolist():
            run, group, broker, queue_id = (int(column[row]) for column in queue)
            if is_marker[row]:
                latest[run, group, broker, queue_id] = row
            else:
                latest.setdefault((run, group, broker, queue_id), None)
        groups: dict[Group, list[int | None]] = {}
        for name, marker in latest.items():
            groups.setdefault(name[:2], []).append(marker)
            if marker is not None:
                end = int(rows.value[marker])
                self.told[name] = int(rows.begin[marker]), NEVER if end == NONE else end
        ok = rows.ended_as(Outcome.OK)
        for of_group, markers in groups.items():
            good = [marker for marker in markers if marker is not None and ok[marker]]
            if good and len(good) == len(markers) and not _may_lie_elsewhere(rows, good):
                good.sort(key=lambda marker: int(rows.begin[marker]))
                self.of[of_group] = (good[0], good[-1])
                context, now = rows.context_of(good[0]), NEVER - 1
                brokers = {rows.name_of("broker", marker) for marker in good}
                self.stands[of_group] = [context.stands(broker, now) for broker in brokers]

    def ask_for(self, group: Group, row: int, passed: int | None) -> bool:
        """Did the reading begin long enough after the message was given up, or passed by?"""
        rows = self.rows
        if group not in self.of:
            return False
        first, info = self.of[group][0], rows.context_of(row).info
        wait = info.config.dead_letter_bound_ms * MS + info.clock_bound_us
        if passed is not None:
            is_over = rows.begin[first] >= rows.begin[passed]
            since = int(rows.started[passed])
        else:
            is_over = rows.end[row] < rows.begin[first]
            since = int(rows.started[row] if rows.ended[row] == NEVER else rows.ended[row])
        return bool(is_over and self._ran(group, since) >= wait)

    def _ran(self, group: Group, since: int) -> int:
        """How long the one of its brokers ran, up to the reading, that stood still the longest."""
        until = int(self.rows.started[self.of[group][0]])
        return min(
            until
            - since
            - sum(max(0, min(end, until) - max(start, since)) for start, end in stands)
            for stands in self.stands[group]
        )

    def still_found(self, message: Message, lies: Mapping[Place, int]) -> list[int]:
        """When each of a message's copies was read that the latest reading does not tell to be gone."""
        found = []
        for place, seq in lies.items():
            began, end = self.told.get((*message[:2], *place[1:3]), (NONE, NEVER))
            if seq >= began or place[3] < end:
                found.append(seq)
        return found


def _may_lie_elsewhere(rows: Rows, markers: Sequence[int]) -> bool:
    """Is there more of a group's dead letters than these queues, as far as the context tells?"""
    context = rows.context_of(markers[0])
    topic = dead_letter_topic(rows.name_of("group", markers[0]))
    added = any(lane.topic == topic for lanes in context.lanes.values() for lane in lanes)
    if (topic,) in context.looks and not added:
        return True
    read = {rows.queue_of(marker)[1:] for marker in markers}
    return any(queue[1:] not in read for queue in context.shows(topic))


def _due(
    rows: Rows, names: _Names, drains: _Drains, lanes: Iterable[_Lane]
) -> dict[Message, list[GivenUp]]:
    """By message, what was given up or passed by long enough before the reading began, once for each place."""
    named = (rows.group != NO_TEXT) & (rows.source != NO_TEXT) & (rows.end < NEVER)
    sent = positions(rows.are(Kind.DEAD_LETTER) & rows.ended_as(Outcome.OK) & named)
    weakly = np.isin(rows.number("code")[sent], STORED_WEAKLY)
    may_be_lost = {(names.message(row)[:2], names.place(row)) for row in sent[weakly].tolist()}
    sent = sent[~weakly]
    letters: dict[tuple[Message, Place], int] = {}
    for row in sent[np.argsort(rows.end[sent], kind="stable")].tolist():
        letters.setdefault((names.message(row), names.place(row)), row)
    due: dict[Message, list[GivenUp]] = {}
    for (message, _), row in letters.items():
        if drains.ask_for(message[:2], row, None):
            due.setdefault(message, []).append((row, None))
    passed: dict[tuple[Message, Place], tuple[Op, Op]] = {}
    pairs = [pair for lane in lanes for pair in lane.passed.values()]
    for last, after in sorted(pairs, key=lambda pair: pair[1].begin):
        passed.setdefault((names.message(last.place), names.place(last.place)), (last, after))
    for (message, place), (last, after) in passed.items():
        told = (message, place) in letters or (message[:2], place) in may_be_lost
        asks = message[2] != NO_TEXT and not told
        if asks and drains.ask_for(message[:2], last.place, after.place):
            due.setdefault(message, []).append((last.place, after.place))
    return due


def _lies(
    rows: Rows, names: _Names, reads: Ints, known: Collection[Message]
) -> dict[Message, dict[Place, int]]:
    """By message, where copies of it were read, and when last.

    It is told by the id of their origin; and by their own, where that is another one and their origin is not among
    those that are known to have been given up.
    """
    reads = reads[np.argsort(rows.end[reads], kind="stable")]
    named = reads[(rows.source[reads] != NO_TEXT) & rows.ended_as(Outcome.OK)[reads]].tolist()
    lies: dict[Message, dict[Place, int]] = {}
    for row in named:
        lies.setdefault(names.message(row), {})[names.place(row)] = int(rows.begin[row])
    own = rows.text("message_id")  # of the same codes as the sources
    for row in named:
        origin = names.message(row)
        if own[row] not in (NO_TEXT, origin[2]) and origin not in known:
            itself = (*origin[:2], int(own[row]))
            lies.setdefault(itself, {})[names.place(row)] = int(rows.begin[row])
    return lies


def _may_be_any(
    rows: Rows, names: _Names, reads: Ints, known: Collection[Message]
) -> Counter[Group]:
    """By group, how many of the copies that were read have an id of their own, or none, and name no origin."""
    copies = reads[((rows.source != NO_TEXT) | (rows.offset != NONE))[reads]]
    copies = copies[(rows.ended_as(Outcome.OK) & (rows.text("origin_id") == NO_TEXT))[copies]]
    lie = {
        (names.message(row), names.place(row))
        for row in copies.tolist()
        if names.message(row) not in known
    }
    return Counter(message[:2] for message, _ in lie)


def _may_be_removed(rows: Rows, row: int, last: int) -> bool:
    """May the broker have removed the dead letter on purpose? Not while it keeps everything."""
    context = rows.context_of(row)
    config, begun = context.info.config, int(rows.begin[row])
    young_us = int(rows.started[row]) + config.keep_ms * MS - context.info.clock_bound_us
    keeps = config.keep_ms > 0 and context.clock_stepped == NEVER
    return any(
        begun < seq <= rows.end[last]
        and not (keeps and at_us < young_us and not context.is_crowded(broker, NEVER - 1))
        for seq, at_us, broker in context.removals.get(
            dead_letter_topic(rows.name_of("group", row)), ()
        )
    )


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
