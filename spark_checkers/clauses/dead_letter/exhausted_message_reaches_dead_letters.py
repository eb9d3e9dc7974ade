"""DLQ-1 over columns: a machine per lane finds what was passed by; the rest looks at a group's dead letters."""

from __future__ import annotations

from functools import partial

import numpy as np

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.twin import Twin
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
from specs.facts.segments import MS, NEVER, NO_TEXT, NONE, Ints, dense
from specs.facts.stored import STORED_WEAKLY
from specs.vocabulary import (
    DLQ_PREFIX,
    LISTENER_SUSPENDS,
    RETRY_PREFIX,
    Kind,
    Outcome,
    dead_letter_topic,
)
from specs.vocabulary import Lane as LaneName

_LANE_KINDS = (Kind.DELIVER, Kind.DEAD_LETTER, Kind.ADD)


class Lane(Machine):
    """Deliveries after which a message must be given up, and what came next."""

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        copies = lane.topic.startswith((RETRY_PREFIX, DLQ_PREFIX))
        self.limit = -1 if copies else self.config.max_reconsume_times
        number = int(findings.rows.number("queue_id")[lane.place])
        name = LaneName(lane.group, lane.topic, lane.broker, -1 if number == NONE else number)
        self.reset = self.context.resets.get(name, NEVER)
        self.exhausted: dict[int, dict[int, Op]] = {}
        self.passed: dict[
            tuple[int, int], tuple[Op, Op]
        ] = {}  # a last delivery, the delivery that passed it by
        self.ended: list[Op] = []  # every delivery that exhausted its message
        self.next: list[Op] = []  # and what changed something about it

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


def gone_through(rows: Rows, findings: Findings) -> list[Lane]:
    """All lanes, with what each passed by."""
    states = []
    for lane in rows.shared(Digest).lanes(_LANE_KINDS):
        state = Lane(lane, findings)
        run_lane(state, lane, NEVER)
        states.append(state)
    return states


def relevant(rows: Rows) -> Ints:
    """The rows of whole lanes that this clause needs: dead letters, and few of the deliveries and adds.

    Judged with these alone it finds the same: every delivery that exhausts its message is there, and what came next.
    """
    states = gone_through(rows, Findings(rows, TWIN.id))
    places = [op.place for state in states for op in (*state.ended, *state.next)]
    letters = np.flatnonzero(rows.are(Kind.DEAD_LETTER) | dead_reads(rows))
    return np.union1d(np.asarray(places, np.int64), letters)


class Drains:
    """For each group: the first and the last of the latest readings of its dead-letter queues, if all are good."""

    def __init__(self, rows: Rows, reads: Ints) -> None:
        marker = (rows.source[reads] == NO_TEXT) & (rows.offset[reads] == NONE)
        by_end = reads[np.argsort(rows.end[reads], kind="stable")]
        queue, count = dense(
            rows.run[by_end],
            rows.group[by_end],
            rows.text("broker")[by_end],
            _queue_id(rows, by_end),
        )
        is_marker = dict(zip(reads.tolist(), marker.tolist(), strict=True))
        latest: dict[int, int | None] = {}
        for number, row in zip(queue.tolist(), by_end.tolist(), strict=True):
            if is_marker[row]:
                latest[number] = row
            else:
                latest.setdefault(number, None)
        broker = rows.text("broker")
        self.told: dict[tuple[int, int, int, int], tuple[int, int]] = {}
        """Of each queue, when its latest reading began, and the end that it tells (NEVER: none)."""
        for number, row in zip(queue.tolist(), by_end.tolist(), strict=True):
            place = int(broker[row]), int(rows.number("queue_id")[row])
            marked = latest[number]
            if marked is not None:
                end = int(rows.value[marked])
                told = int(rows.begin[marked]), NEVER if end == NONE else end
                self.told[int(rows.run[row]), int(rows.group[row]), *place] = told
        groups: dict[tuple[int, int], list[int | None]] = {}
        queues_group = {
            number: (int(rows.run[row]), int(rows.group[row]))
            for number, row in zip(queue.tolist(), by_end.tolist(), strict=True)
        }
        for number in range(count):
            groups.setdefault(queues_group[number], []).append(latest[number])
        self.of: dict[tuple[int, int], tuple[int, int]] = {}
        self.stands: dict[tuple[int, int], list[list[tuple[int, int]]]] = {}
        ok = rows.ended_as(Outcome.OK)
        for group, rows_of in groups.items():
            good = [row for row in rows_of if row is not None and ok[row]]
            if good and len(good) == len(rows_of) and not _knows_of_more(rows, good):
                in_turn = sorted(good, key=lambda row: int(rows.begin[row]))
                self.of[group] = (in_turn[0], in_turn[-1])
                context, now = rows.context_of(good[0]), NEVER - 1
                brokers = {rows.name_of("broker", row) for row in good}
                self.stands[group] = [context.stands(broker, now) for broker in brokers]

    def asks_for(
        self, rows: Rows, message: tuple[int, int, int], row: int, passed: int | None
    ) -> bool:
        """Did the reading begin long enough after the message was given up, or passed by?"""
        drained = self.of.get(message[:2])
        if drained is None:
            return False
        first = drained[0]
        info = rows.context_of(row).info
        wait = info.config.dead_letter_bound_ms * MS + info.clock_bound_us
        if passed is not None:
            return bool(
                rows.begin[first] >= rows.begin[passed]
                and self._ran(rows, message[:2], int(rows.started[passed])) >= wait
            )
        told = int(rows.ended[row]) or int(rows.started[row])
        ran = self._ran(rows, message[:2], told)
        return bool(rows.end[row] < rows.begin[first] and ran >= wait)

    def still_found(
        self, message: tuple[int, int, int], lies: dict[Place, int]
    ) -> dict[Place, int]:
        """Of a message's copies, with when they were read, those that the latest reading does not tell to be gone."""
        found = {}
        for place, seq in lies.items():
            began, end = self.told.get((*message[:2], *place[1:3]), (NONE, NEVER))
            if seq >= began or place[3] < end:
                found[place] = seq
        return found

    def _ran(self, rows: Rows, group: tuple[int, int], since: int) -> int:
        """How long the one of its brokers ran, up to the reading, that stood still the longest."""
        until = int(rows.started[self.of[group][0]])
        return min(
            until
            - since
            - sum(max(0, min(end, until) - max(start, since)) for start, end in stands)
            for stands in self.stands[group]
        )


def _knows_of_more(rows: Rows, markers: list[int]) -> bool:
    """Is there more of a group's dead letters than these queues, as far as the context tells?"""
    context = rows.context_of(markers[0])
    topic = dead_letter_topic(rows.words("group")[int(rows.group[markers[0]])])
    if (topic,) in context.looks and not any(
        lane.topic == topic for lanes in context.lanes.values() for lane in lanes
    ):
        return True
    read = {rows.queue_of(marker)[1:] for marker in markers}
    return any(queue[1:] not in read for queue in context.shows(topic))


def _queue_id(rows: Rows, where: Ints) -> Ints:
    return rows.number("queue_id")[where]


Message = tuple[int, int, int]
Place = tuple[int, int, int, int]
GivenUp = tuple[int, int | None]
"""The row that says it, and the delivery that passed it by where nobody says it."""


def kernel(rows: Rows, findings: Findings) -> None:
    """Whatever was given up, or passed by, is among the dead letters that were read, once for each of its places."""
    grouped = rows.group != NO_TEXT
    reads = np.flatnonzero(dead_reads(rows) & grouped & (rows.end < NEVER))
    if not len(reads):
        return
    drains = Drains(rows, reads)
    places = [rows.text("topic"), rows.text("broker"), rows.number("queue_id"), rows.offset]

    def message_of(row: int) -> Message:
        return int(rows.run[row]), int(rows.group[row]), int(rows.source[row])

    def place_of(row: int) -> Place:
        topic, broker, queue_id, offset = (int(column[row]) for column in places)
        return topic, broker, queue_id, offset

    named = reads[(rows.source[reads] != NO_TEXT) & rows.ended_as(Outcome.OK)[reads]]
    lies: dict[Message, dict[Place, int]] = {}
    for row in named[np.argsort(rows.end[named], kind="stable")].tolist():
        lies.setdefault(message_of(row), {})[place_of(row)] = int(rows.begin[row])
    ok = rows.ended_as(Outcome.OK)
    sent = np.flatnonzero(
        rows.are(Kind.DEAD_LETTER) & ok & grouped & (rows.source != NO_TEXT) & (rows.end < NEVER)
    )
    weakly = np.isin(rows.number("code"), STORED_WEAKLY)
    half_told = {(message_of(row)[:2], place_of(row)) for row in sent[weakly[sent]].tolist()}
    sent = sent[~weakly[sent]]
    letters: dict[Message, dict[Place, int]] = {}
    for row in sent[np.argsort(rows.end[sent], kind="stable")].tolist():
        letters.setdefault(message_of(row), {}).setdefault(place_of(row), row)
    due: dict[Message, dict[Place, tuple[int, int | None]]] = {}
    for message, mine in letters.items():
        for place, row in mine.items():
            if drains.asks_for(rows, message, row, None):
                due.setdefault(message, {})[place] = (row, None)
    states = gone_through(rows, findings)
    passed = [pair for state in states for pair in state.passed.values()]
    done: set[tuple[Message, Place]] = set()
    for before, after in sorted(passed, key=lambda pair: pair[1].begin):
        message, place = message_of(before.place), place_of(before.place)
        if message[2] == NO_TEXT or (message, place) in done:
            continue
        done.add((message, place))
        if (message[:2], place) in half_told:
            continue
        if place not in letters.get(message, {}) and drains.asks_for(
            rows, message, before.place, after.place
        ):
            due.setdefault(message, {})[place] = (before.place, after.place)
    tried = np.flatnonzero(rows.are(Kind.DEAD_LETTER) & grouped & (rows.source != NO_TEXT))
    ended = [op.place for state in states for op in state.ended]
    known = {message_of(row) for row in [*tried.tolist(), *ended]}
    own = rows.text("message_id")  # of the same codes as the sources
    other = named[(own[named] != NO_TEXT) & (own[named] != rows.source[named])]
    for row in other[np.argsort(rows.end[other], kind="stable")].tolist():
        if message_of(row) not in known:
            itself = (*message_of(row)[:2], int(own[row]))
            lies.setdefault(itself, {})[place_of(row)] = int(rows.begin[row])
    missed: dict[tuple[int, int], list[GivenUp]] = {}
    for message, given_up in due.items():
        last = drains.of[message[:2]][1]
        lie = drains.still_found(message, lies.get(message, {}))
        missed.setdefault(message[:2], []).extend(
            _missed(rows, findings, last, lie, list(given_up.values()))
        )
    copies = reads[((rows.source != NO_TEXT) | (rows.offset != NONE))[reads] & ok[reads]]
    unnamed = copies[rows.text("origin_id")[copies] == NO_TEXT].tolist()
    may_be_any = {
        (*message_of(row), *place_of(row)) for row in unnamed if message_of(row) not in known
    }
    for group, given_up_there in missed.items():
        passed_over = sum(1 for each in may_be_any if each[:2] == group)
        in_turn = sorted(given_up_there, key=lambda pair: int(rows.begin[pair[0]]))
        _judge(rows, findings, drains.of[group][1], in_turn[passed_over:])


def _missed(
    rows: Rows,
    findings: Findings,
    last: int,
    lies: dict[Place, int],
    given_up: list[GivenUp],
) -> list[GivenUp]:
    """One message: as many copies as places at which it was given up."""
    given_up.sort(key=lambda pair: int(rows.begin[pair[0]]))
    copies = sum(1 for seq in lies.values() if seq >= rows.begin[given_up[0][0]])
    findings.at_stake(np.asarray([row for row, _ in given_up[:copies]], np.int64))
    return [pair for pair in given_up[copies:] if not _was_removed(rows, pair[0], last)]


def _judge(rows: Rows, findings: Findings, last: int, missed: list[GivenUp]) -> None:
    for row, passed in missed:
        findings.at_stake(np.asarray([row]))
        name = "not-found" if passed is None else "passed-by"
        findings.violation([each for each in (row, passed, last) if each is not None], name=name)


def _was_removed(rows: Rows, row: int, last: int) -> bool:
    """May the broker have removed the dead letter on purpose? Not while it keeps everything."""
    context = rows.context_of(row)
    topic = dead_letter_topic(rows.words("group")[int(rows.group[row])])
    config, begun = context.info.config, int(rows.begin[row])
    young_us = int(rows.started[row]) + config.keep_ms * MS - context.info.clock_bound_us
    keeps = config.keep_ms > 0 and context.clock_stepped == NEVER
    return any(
        begun < seq <= rows.end[last]
        and not (keeps and at_us < young_us and not context.is_crowded(broker, NEVER - 1))
        for seq, at_us, broker in context.removals.get(topic, ())
    )


TWIN = Twin(
    "DLQ-1",
    (*OP_COLUMNS, "message_id", "origin_id"),
    kernel,
    only=ONLY_DEAD_READS,
    pick=relevant,
)
find = TWIN.find


# ---- what breaks the clause, planted


def second_try_arrives(trace: Trace) -> Changes:
    for last, letter, _after in planting.given_up(trace):
        failed = {"outcome": Outcome.REFUSED, "code": 1, "attempt": 1}
        yield partial(
            lambda r, a, f: Trace(
                trace.changed({a.seq_begin: {"attempt": 2}}).rows, trace.info
            ).with_more([trace.another(a, r, 1, **f)], [a.seq_begin]),
            last,
            letter,
            failed,
        )


def lost_dead_letter(trace: Trace) -> Changes:
    for marker, row in planting.dead_reads(trace):
        yield partial(lambda m, r: trace.without([r.seq_begin], [m.seq_begin]), marker, row)


DEFECTS = (
    Mutant(
        "lost-dead-letter", "DLQ-1", "a dead letter is missing", lost_dead_letter, dead_letters=True
    ),
)

LOOKALIKES = (
    Mutant(
        "second-try-arrives",
        None,
        "a dead letter is refused at first, and acknowledged then",
        second_try_arrives,
    ),
)
