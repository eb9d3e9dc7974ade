"""DLQ-9 over columns: only the call after a dead letter is looked at."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.lanes import (
    OP_COLUMNS,
    LaneItems,
    Machine,
    Op,
    Stretch,
    ends_as,
    machine_kernel,
    may_be_manual,
)
from specs.facts.segments import MS, NEVER, NO_TEXT, NONE
from specs.vocabulary import DLQ_PREFIX, LISTENER_SUSPENDS, RETRY_PREFIX, Kind, Outcome


class Work:
    """One incarnation: its last delivery, its pulls, and the acknowledged dead letter of what it delivered last."""

    __slots__ = ("add", "last", "letter", "lock", "pulls", "renewed")

    def __init__(self, add: Op | None = None) -> None:
        self.add = add
        self.last: Op | None = None
        self.letter: Op | None = None
        self.lock: Op | None = None
        self.renewed: Op | None = None
        self.pulls: list[Op] = []


class Lane(Machine):
    """Works by incarnation, last grants by client."""

    ENDS = ends_as([Kind.LOCK, Kind.DEAD_LETTER], [Outcome.OK, Outcome.REFUSED])
    STAKE = Kind.DEAD_LETTER

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.cap = self.config.continuous_ms * MS
        self.locks: dict[int, Op] = {}
        self.works: dict[int, Work] = {}
        self.counts = self.config.batch == 1 and not lane.topic.startswith(
            (RETRY_PREFIX, DLQ_PREFIX)
        )

    def _work(self, name: int) -> Work:
        found = self.works.get(name)
        if found is None:
            found = self.works[name] = Work()
        return found

    def takes(self, stretch: Stretch) -> bool:
        work = self._work(stretch.first.incarnation)
        if work.letter is not None:
            return False
        work.last = stretch.last
        for pull in self.inside:
            self.begins(pull)
        return True

    def begins(self, op: Op) -> None:
        if op.kind is Kind.RESET:
            self.works.clear()
        elif op.kind is Kind.ADD:
            if op.incarnation != NO_TEXT:
                self.works[op.incarnation] = Work(op)
        elif op.kind is Kind.DROP:
            self.works.pop(op.incarnation, None)
        elif op.kind is Kind.UNLOCK:
            self._lost(op)
        elif op.kind is Kind.PULL and op.incarnation != NO_TEXT:
            if op.outcome is Outcome.OK and op.end < NEVER and op.value != NONE:
                self._work(op.incarnation).pulls.append(op)
        elif op.kind is Kind.DELIVER and op.incarnation != NO_TEXT:
            work = self._work(op.incarnation)
            if work.last is not None and work.letter is not None and work.lock is not None:
                self._next(work, work.last, work.letter, work.lock, op)
            work.last, work.letter, work.lock, work.renewed = op, None, None, None

    def _next(self, work: Work, last: Op, letter: Op, lock: Op, op: Op) -> None:
        pull: Op | None = None
        for each in sorted(work.pulls, key=lambda each: each.end):
            if each.end < letter.end and (pull is None or each.value > pull.value):
                pull = each
        work.pulls = [] if pull is None else [each for each in work.pulls if each.end >= pull.end]
        until = letter.ended + self.config.schedule_slack_ms * MS
        if pull is None or not last.offset < op.offset < pull.value:
            return
        lease = self.config.client_lease_ms * MS
        add = None if last.reconsume > 0 else work.add
        renewed = work.renewed if lock.started + lease < until else None
        if (renewed or lock).started + lease < until or until > (add or last).started + self.cap:
            return
        if self.paused_since(op.client, last.started) or self.leaving(op.client):
            return
        self.stakes += 1
        if op.started > until:
            self.found(add, last, letter, lock, renewed, pull, op)

    def _lost(self, op: Op) -> None:
        self.locks.pop(op.client, None)
        for work in self.works.values():
            if work.lock is not None and work.lock.client == op.client:
                work.lock = None

    def _renewed(self, op: Op) -> None:
        lease = self.config.client_lease_ms * MS
        for work in self.works.values():
            lock = work.lock
            fresh = (
                lock is not None and lock.client == op.client and op.ended <= lock.started + lease
            )
            if fresh and work.renewed is None:
                work.renewed = op

    def ends(self, op: Op) -> None:
        if op.kind is Kind.LOCK:
            if op.outcome is Outcome.OK:
                self.locks[op.client] = op
                self._renewed(op)
            elif op.outcome is Outcome.REFUSED:
                self._lost(op)
        elif (
            op.kind is Kind.DEAD_LETTER
            and op.outcome is Outcome.OK
            and op.incarnation != NO_TEXT
            and self.counts
        ):
            work = self._work(op.incarnation)
            last = work.last
            in_vain = last is not None and last.outcome in LISTENER_SUSPENDS
            in_vain = in_vain and last is not None and not may_be_manual(last)
            known = last is not None and (last.reconsume > 0 or work.add is not None)
            if last is not None and in_vain and known and last.offset == op.offset:
                work.letter, work.lock = op, self.locks.get(op.client)


_KINDS = (Kind.DELIVER, Kind.DEAD_LETTER, Kind.LOCK, Kind.UNLOCK, Kind.ADD, Kind.DROP, Kind.RESET)
TWIN = Twin("DLQ-9", OP_COLUMNS, machine_kernel(Lane, _KINDS, lease=True, asides=(Kind.PULL,)))
find = TWIN.find


# ---- what breaks the clause, planted


def lane_stands_still(trace: Trace) -> Changes:
    """No call follows a dead letter for longer than the bound, though (as is said now) the messages were there."""
    works = {(rows[0].lane, rows[0].incarnation): rows for rows in trace.works}
    for last, letter, _after in planting.given_up(trace):
        rows = works[letter.lane, letter.incarnation]
        until_us = (letter.ended_us or 0) + trace.info.config.schedule_slack_ms * MS
        calls = [
            r
            for r in rows
            if r.kind in (Kind.DELIVER, Kind.DEAD_LETTER) and r.seq_begin > letter.seq_begin
        ]
        late = next((r for r in calls if r.kind is Kind.DELIVER and r.started_us > until_us), None)
        answered = [
            r
            for r in rows
            if r.kind is Kind.PULL and r.seq_end is not None and r.outcome is Outcome.OK
        ]
        pulls = [
            r for r in answered if r.value is not None and (r.seq_end or 0) < (letter.seq_end or 0)
        ]
        lock = planting.grant(trace, letter, (letter.ended_us or 0) - MS, until_us)
        if late is None or not pulls or lock is None or not last.reconsume_times:
            continue
        change = {pulls[-1].seq_begin: {"value": (late.queue_offset or 0) + 1}}
        gone = [r.seq_begin for r in calls if r.seq_begin < late.seq_begin]
        about = (letter.seq_begin, late.seq_begin)
        yield partial(
            lambda c, g, a: Trace(trace.changed(c).rows, trace.info).without(g, a),
            change,
            gone,
            about,
        )


DEFECTS = (
    Mutant(
        "lane-stands-still",
        "DLQ-9",
        "the lane waits after a message was given up",
        lane_stands_still,
    ),
)
