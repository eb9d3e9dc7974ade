"""DLQ-1 over columns: a machine per lane finds what was passed by; the rest looks at a group's dead letters."""

from __future__ import annotations

import numpy as np

from spark_checkers.clauses.dead_letter.dead_letter_without_delay import dead_reads
from spark_checkers.lanes import OP_COLUMNS, LaneItems, Machine, Op, Stretch, run_lane
from spark_checkers.rows import MS, NEVER, NO_TEXT, NONE, Findings, Rows
from spark_checkers.segments import Ints, dense, is_first
from spark_checkers.twin import Twin
from specs.vocabulary import LISTENER_SUSPENDS, RETRY_PREFIX, Kind, Outcome, dead_letter_topic

_LANE_KINDS = (Kind.DELIVER, Kind.DEAD_LETTER, Kind.ADD)


class Lane(Machine):
    """Deliveries after which a message must be given up, and what came next."""

    __slots__ = ("ended", "exhausted", "limit", "next", "passed")

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        original = self.config.batch == 1 and not lane.topic.startswith(RETRY_PREFIX)
        self.limit = self.config.max_reconsume_times if original else -1
        self.exhausted: dict[int, Op] = {}
        self.passed: list[tuple[Op, Op]] = []  # (a last delivery, the delivery that passed it by)
        self.ended: list[Op] = []  # every delivery that exhausted its message
        self.next: list[Op] = []  # and what cleared it

    def takes(self, stretch: Stretch) -> bool:
        self.begins(stretch.first)
        return True

    def begins(self, op: Op) -> None:
        before = self.exhausted.get(op.incarnation)
        if before is None or (op.kind is Kind.DEAD_LETTER and op.offset != before.offset):
            return
        del self.exhausted[op.incarnation]
        self.next.append(op)
        went_on = op.kind is Kind.DELIVER and op.offset > max(before.offset, 0)
        if went_on and op.incarnation != NO_TEXT:
            self.passed.append((before, op))

    def ends(self, op: Op) -> None:
        in_vain = op.kind is Kind.DELIVER and op.outcome in LISTENER_SUSPENDS and not op.manual
        if in_vain and 0 <= self.limit <= op.reconsume:
            self.exhausted[op.incarnation] = op
            self.ended.append(op)


def gone_through(rows: Rows, findings: Findings) -> list[Lane]:
    """All lanes, with what each passed by."""
    states = []
    for lane in rows.digest.lanes(_LANE_KINDS):
        state = Lane(lane, findings)
        run_lane(state, lane, NEVER)
        states.append(state)
    return states


def relevant(rows: Rows) -> Ints:
    """The deliveries and adds that this clause needs of whole lanes, besides the dead letters.

    Judged with these alone it finds the same: every delivery that exhausts its message is there, and what came next.
    """
    states = gone_through(rows, Findings(rows, "DLQ-1"))
    places = [op.place for state in states for op in (*state.ended, *state.next) if op.kind is not Kind.DEAD_LETTER]
    return np.unique(np.asarray(places, np.int64))


class Drains:
    """For each group: the first and the last of the latest readings of its dead-letter queues, if all are good."""

    def __init__(self, rows: Rows, reads: Ints) -> None:
        marker = (rows.source[reads] == NO_TEXT) & (rows.offset[reads] == NONE)
        by_end = reads[np.argsort(rows.end[reads], kind="stable")]
        queue, count = dense(rows.run[by_end], rows.group[by_end], rows.text("broker")[by_end], _queue_id(rows, by_end))
        is_marker = dict(zip(reads.tolist(), marker.tolist(), strict=True))
        latest: dict[int, int | None] = {}
        for number, row in zip(queue.tolist(), by_end.tolist(), strict=True):
            if is_marker[row]:
                latest[number] = row
            else:
                latest.setdefault(number, None)
        groups: dict[tuple[int, int], list[int | None]] = {}
        queues_group = {
            number: (int(rows.run[row]), int(rows.group[row]))
            for number, row in zip(queue.tolist(), by_end.tolist(), strict=True)
        }
        for number in range(count):
            groups.setdefault(queues_group[number], []).append(latest[number])
        self.of: dict[tuple[int, int], tuple[int, int]] = {}
        ok = rows.ended_as(Outcome.OK)
        for group, rows_of in groups.items():
            good = [row for row in rows_of if row is not None and ok[row]]
            if good and len(good) == len(rows_of):
                in_turn = sorted(good, key=lambda row: int(rows.begin[row]))
                self.of[group] = (in_turn[0], in_turn[-1])


def _queue_id(rows: Rows, where: Ints) -> Ints:
    return rows.number("queue_id")[where]


def kernel(rows: Rows, findings: Findings) -> None:
    """Whatever was given up, or passed by, is among the dead letters that were read."""
    grouped = rows.group != NO_TEXT
    reads = np.flatnonzero(dead_reads(rows) & grouped & (rows.end < NEVER))
    if not len(reads):
        return
    drains = Drains(rows, reads)
    named = reads[(rows.source[reads] != NO_TEXT) & rows.ended_as(Outcome.OK)[reads]]
    last_read: dict[tuple[int, int, int], int] = {}
    for row in named[np.argsort(rows.end[named], kind="stable")].tolist():
        last_read[(int(rows.run[row]), int(rows.group[row]), int(rows.source[row]))] = int(rows.begin[row])
    ok = rows.ended_as(Outcome.OK)
    sent = np.flatnonzero(rows.are(Kind.DEAD_LETTER) & ok & grouped & (rows.source != NO_TEXT) & (rows.end < NEVER))
    sent = sent[np.argsort(rows.end[sent], kind="stable")]
    sent = sent[is_first(rows.run[sent], rows.group[sent], rows.source[sent])]
    for row in sent.tolist():
        _judge(rows, findings, drains, last_read, row, None)
    passed = [pair for state in gone_through(rows, findings) for pair in state.passed]
    done: set[tuple[int, int, int]] = set()
    for before, after in sorted(passed, key=lambda pair: pair[1].begin):
        message = (int(rows.run[before.place]), int(rows.group[before.place]), int(rows.source[before.place]))
        if message[2] != NO_TEXT and message not in done:
            done.add(message)
            _judge(rows, findings, drains, last_read, before.place, after.place)


def _judge(
    rows: Rows,
    findings: Findings,
    drains: Drains,
    last_read: dict[tuple[int, int, int], int],
    given_up: int,
    passed: int | None,
) -> None:
    group = (int(rows.run[given_up]), int(rows.group[given_up]))
    drained = drains.of.get(group)
    if drained is None:
        return
    first, last = drained
    bound = rows.config_of(given_up).dead_letter_bound_ms * MS
    if passed is None:
        ended = int(rows.ended[given_up]) or int(rows.started[given_up])
        if rows.end[given_up] >= rows.begin[first] or rows.started[first] < ended + bound:
            return
    elif rows.begin[first] < rows.begin[passed] or rows.started[first] < rows.started[passed] + bound:
        return
    is_read = last_read.get((*group, int(rows.source[given_up])), -1) >= rows.begin[given_up]
    topic = dead_letter_topic(rows.words("group")[int(rows.group[given_up])])
    begun, until = int(rows.begin[given_up]), int(rows.end[last])
    if not is_read and rows.context_of(given_up).trimmed_between(topic, begun, until):
        return
    findings.at_stake(np.asarray([given_up]))
    if not is_read:
        findings.violation([row for row in (given_up, passed, last) if row is not None])


TWIN = Twin("DLQ-1", (*OP_COLUMNS, "message_id", "origin_id"), kernel)
find = TWIN.find
