"""RTY-2 over columns: a stretch is passed over where no suspended batch waits."""

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
    asks_again,
    ends_as,
    machine_kernel,
    may_put_back,
    own_wait_ms,
    wait_ms,
)
from specs.facts.segments import MS, NEVER, NO_TEXT, NONE
from specs.vocabulary import LISTENER_SUSPENDS, Kind, Outcome

LOCK_WAIT_MS = 1000
"""So long a client may wait for each broker that it asks for leases."""


class Waiting:
    """A suspended batch of one incarnation, or what is left of it: when it is due (NEVER: a dead letter decides), under
    which grant. ops: its deliveries, by offset. part: of what has come again, before and after."""

    __slots__ = ("add", "due", "letter", "lock", "op", "ops", "part")

    def __init__(self, add: Op, op: Op) -> None:
        self.add = add
        self.op = op
        self.ops: dict[int, Op] = {}
        self.part: tuple[Op, ...] = ()
        self.due = NEVER
        self.letter: Op | None = None
        self.lock: Op | None = None

    @property
    def may_be_taken(self) -> bool:
        """Did nobody see how its dead letter was answered?"""
        return self.letter is not None and self.letter.outcome is not Outcome.REFUSED

    def comes_again(self, op: Op) -> bool:
        """Is the message of the dead letter delivered?"""
        return (
            self.letter is not None and op.kind is Kind.DELIVER and op.offset == self.letter.offset
        )


class Lane(Machine):
    """The last grant of each client, what waits to come again, and the rest of what comes again in part."""

    ENDS = ends_as([Kind.DELIVER, Kind.DEAD_LETTER, Kind.LOCK])

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.adds: dict[int, Op] = {}
        self.locks: dict[int, Op] = {}
        self.waiting: dict[int, Waiting] = {}
        self.rest: dict[int, Waiting] = {}
        self.under_way: set[int] = set()  # clients of which a request takes time
        self.slack = self.config.schedule_slack_ms * MS

    def takes(self, stretch: Stretch) -> bool:
        name = stretch.first.incarnation
        return name not in self.waiting and name not in self.rest

    def begins(self, op: Op) -> None:
        if op.kind is Kind.RESET:
            self.waiting.clear()
            self.rest.clear()
        elif op.kind is Kind.ADD:
            self.adds[op.incarnation] = op
            self.waiting.pop(op.incarnation, None)
            self.rest.pop(op.incarnation, None)
        elif op.kind in (Kind.DELIVER, Kind.DROP):
            waiting = self.waiting.pop(op.incarnation, None)
            if op.kind is Kind.DROP:
                self.adds.pop(op.incarnation, None)
                self.rest.pop(op.incarnation, None)
            if waiting is not None:
                self._seen(waiting, op)
            if op.kind is Kind.DELIVER:
                self._again(waiting, op)
        elif op.kind is Kind.DEAD_LETTER:
            self.rest.pop(op.incarnation, None)
            if op.incarnation in self.waiting:
                self.waiting[op.incarnation].due = NEVER
        elif op.kind is Kind.LOCK:
            for name, waiting in list(self.waiting.items()):
                if (
                    waiting.op.client == op.client
                    and waiting.due < NEVER
                    and not waiting.may_be_taken
                    and op.started > self._until(waiting)
                ):
                    del self.waiting[name]
                    self._seen(waiting, op)
            if op.end > op.begin:
                self.under_way.add(op.client)
        elif op.kind is Kind.UNLOCK:
            self._lost(op)

    def _again(self, waiting: Waiting | None, op: Op) -> None:
        """Is the delivery of a part of the batch that waited?"""
        offset = max(op.offset, 0)
        before = None if waiting is None else waiting.ops.pop(offset, None)
        if waiting is None and op.incarnation in self.rest:
            rest = self.rest[op.incarnation]
            if rest.part[1].op == op.op:
                rest.ops.pop(offset, None)
                return
        self.rest.pop(op.incarnation, None)
        if waiting is not None and before is not None and waiting.due < NEVER:
            rest = self.rest[op.incarnation] = Waiting(waiting.add, waiting.op)
            rest.ops, rest.part = waiting.ops, (before, op)
            rest.letter, rest.due = waiting.letter, waiting.due

    def _part_ended(self, op: Op) -> None:
        """Where a part of a batch has come again and ended well, the rest is due."""
        rest = self.rest.get(op.incarnation)
        if rest is None or rest.part[1].op != op.op:
            return
        by_rollback = op.outcome is Outcome.ROLLBACK and not may_put_back(op)
        well = op.outcome in (Outcome.SUCCESS, Outcome.COMMIT) or by_rollback
        if not well or op.ended >= NEVER or not rest.ops:
            del self.rest[op.incarnation]
            if self.waiting.get(op.incarnation) is rest:
                del self.waiting[op.incarnation]
            return
        own = self.config.suspend_ms
        rest.op = rest.ops[min(rest.ops)]
        asked = [each.ended + wait_ms(each, own) * MS for each in rest.ops.values()]
        rest.due = max(rest.due, op.ended, *asked)
        rest.lock = self.locks.get(op.client)
        self.waiting[op.incarnation] = rest

    def _seen(self, waiting: Waiting, op: Op) -> None:
        lock, client = waiting.lock, waiting.op.client
        if waiting.due == NEVER or lock is None or client in self.under_way:
            return
        if waiting.may_be_taken and not waiting.comes_again(op):
            return
        until = self._until(waiting)
        kept = lock.started + self.config.client_lease_ms * MS >= until
        there = not self.paused_since(client, waiting.op.started) and not self.leaving(client)
        if not kept or not there or self.client_died_since(client, waiting.op):
            return
        if not self.context.has_threads(self.lane.name(client), self.now):
            return
        comes = op.kind is Kind.DELIVER and (not waiting.part or op.offset in waiting.ops)
        self.stakes += comes or op.started > until
        if op.started > until:
            name = "rest-too-late" if waiting.part else "too-late"
            self.found(waiting.add, waiting.op, waiting.letter, *waiting.part, lock, op, name=name)

    def _until(self, waiting: Waiting) -> int:
        """The end of the bound: sooner where the consumer's own, longer time would be over."""
        brokers = self.context.brokers_of(self.lane.name(waiting.op.client), self.now)
        due = waiting.due + max(brokers - 1, 0) * LOCK_WAIT_MS * MS
        if waiting.part:
            return due + self.slack
        asked, own = (
            wait_ms(waiting.op, self.config.suspend_ms),
            own_wait_ms(self.config.suspend_ms),
        )
        if asked >= own:
            return due + self.slack
        return due + min(self.slack, max(self.slack // 2 // MS * MS, (own - asked - 1) * MS))

    def _lost(self, op: Op) -> None:
        self.locks.pop(op.client, None)
        for waiting in self.waiting.values():
            if waiting.op.client == op.client:
                waiting.lock = None

    def ends(self, op: Op) -> None:
        if op.kind is Kind.DELIVER:
            self._part_ended(op)
            self._ended(op)
        elif op.kind is Kind.DEAD_LETTER and op.incarnation in self.waiting:
            if op.outcome is Outcome.OK:
                del self.waiting[op.incarnation]
            else:
                self.waiting[op.incarnation].letter = op
                self._wait(self.waiting[op.incarnation], op)
        elif op.kind is Kind.LOCK:
            self.under_way.discard(op.client)
            if op.outcome is not Outcome.OK:
                self._lost(op)
                return
            self.locks[op.client] = op
            for waiting in self.waiting.values():
                if (
                    waiting.op.client == op.client
                    and waiting.due < NEVER
                    and op.ended <= waiting.due - MS
                ):
                    waiting.lock = op

    def _ended(self, op: Op) -> None:
        add = self.adds.get(op.incarnation)
        if add is None or op.incarnation == NO_TEXT or op.client == NO_TEXT or not asks_again(op):
            return
        before = self.waiting.get(op.incarnation)
        sure = before is None or before.op.op != op.op or before.due < NEVER
        waiting = self.waiting[op.incarnation] = Waiting(add, op)
        if before is not None and before.op.op == op.op:
            waiting.ops = before.ops
        if op.offset >= 0:
            waiting.ops[op.offset] = op
        limit = self.config.max_reconsume_times
        if sure and (
            op.outcome not in LISTENER_SUSPENDS or limit < 0 or NONE < op.reconsume < limit
        ):
            self._wait(waiting, op)

    def _wait(self, waiting: Waiting, after: Op) -> None:
        if after.ended < NEVER:
            waiting.due = after.ended + wait_ms(waiting.op, self.config.suspend_ms) * MS
            waiting.lock = self.locks.get(waiting.op.client)


_KINDS = (Kind.DELIVER, Kind.DEAD_LETTER, Kind.LOCK, Kind.UNLOCK, Kind.ADD, Kind.DROP, Kind.RESET)
TWIN = Twin("RTY-2", OP_COLUMNS, machine_kernel(Lane, _KINDS, lease=True))
find = TWIN.find


# ---- what breaks the clause, planted


def suspended_for_ever(trace: Trace) -> Changes:
    """No call follows a suspended one until the lease is renewed, long after."""
    config = trace.info.config
    brokers = len({row.broker for row in trace.of(Kind.ADD)})
    for rows in trace.works:
        calls = [row for row in rows if row.kind in (Kind.DELIVER, Kind.DEAD_LETTER)]
        for row in calls:
            used_up = 0 <= config.max_reconsume_times <= (row.reconsume_times or 0)
            if (
                row.outcome not in LISTENER_SUSPENDS
                or row.suspend_ms is None
                or used_up
                or row.ended_us is None
            ):
                continue
            due_us = row.ended_us + row.suspend_ms * MS
            until_us = due_us + config.schedule_slack_ms * MS + (brokers - 1) * LOCK_WAIT_MS * MS
            lock = planting.grant(trace, row, due_us - MS, until_us + MS)
            later = [
                r
                for r in trace.locks(row.lane)
                if r.client_id == row.client_id and r.started_us > until_us
            ]
            if lock is not None and later and later[0].seq_begin < planting.until_drop(rows):
                gone = [
                    r.seq_begin for r in calls if row.seq_begin < r.seq_begin < later[0].seq_begin
                ]
                about = (row.seq_begin, later[0].seq_begin)
                yield partial(trace.without, gone, about)


DEFECTS = (
    Mutant(
        "suspended-for-ever", "RTY-2", "a suspended message never comes again", suspended_for_ever
    ),
)
