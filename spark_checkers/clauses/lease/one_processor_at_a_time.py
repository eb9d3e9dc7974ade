"""LSE-2 over columns: a stretch is taken whole unless another call may still run while it begins."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from spark_checkers.planting import STRANGER, Changes, Mutant, Planted, Trace
from spark_checkers.twin import Twin
from specs.clauses.rows import is_manual
from specs.facts.findings import Findings
from specs.facts.grants import Unlocks
from specs.facts.lanes import (
    OP_COLUMNS,
    LaneItems,
    Machine,
    Op,
    Stretch,
    ended_before,
    ends_as,
    machine_kernel,
)
from specs.facts.segments import MS, NEVER, NO_TEXT, NONE
from specs.history.row import Row
from specs.plan.config import ROCKETMQ
from specs.vocabulary import Kind, Outcome


class Calls:
    """Of one process of a client: its last call, and the one that ends last."""

    __slots__ = ("op", "running")

    def __init__(self, running: Op) -> None:
        self.op = NONE
        self.running = running

    def runs(self, op: Op, *, anew: bool) -> None:
        """anew: what ran before is gone with its process."""
        self.op = op.op
        if anew or op.end >= self.running.end:
            self.running = op


class Client:
    """One client: its last grant, its last certain one, its last drop and unlock, and the calls of its processes.

    over: when (seq) it first gave the lane back since the certain grant; whatever it calls later has no lease.
    """

    __slots__ = ("calls", "drop", "granted", "lock", "over", "unlock")

    def __init__(self) -> None:
        self.granted: Op | None = None
        self.lock: Op | None = None
        self.over = NEVER
        self.drop: Op | None = None
        self.unlock: Op | None = None
        self.calls: dict[int, Calls] = {}


class Lane(Machine):
    """The clients of the lane."""

    ENDS = ends_as([Kind.LOCK], [Outcome.OK])

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.clients: dict[int, Client] = {}
        self.unlocks = Unlocks(self)
        self.limit_us = self.config.broker_lease_ms * MS
        self.look_us = self.config.guard_slack_ms * MS
        self.stop_us = self.look_us if self.look_us else -1
        self.clocks_us = self.context.info.clock_bound_us
        self.by_connection = self.config.system != ROCKETMQ
        self.processes = lane.digest.rows.text("process")

    def _client(self, code: int) -> Client:
        client = self.clients.get(code)
        if client is None:
            client = self.clients[code] = Client()
        return client

    def _process(self, op: Op) -> int:
        return int(self.processes[op.place])

    def _others(self, op: Op, at_us: int) -> Iterator[tuple[int, Client, Op, Op]]:
        """The calls beside which this one would count then: of whom, its lock, and the one that ends last."""
        mine = self._process(op)
        for code, client in self.clients.items():
            lock = client.lock
            if lock is None or at_us - lock.started + self.clocks_us > self.limit_us:
                continue
            for process, calls in client.calls.items():
                running = calls.running
                apart = (
                    process != mine
                    and NO_TEXT not in (mine, process)
                    and NEVER not in (op.end, running.end)
                )
                leased = running.begin < client.over
                if leased and (code != op.client or apart):
                    yield code, client, lock, running

    def takes(self, stretch: Stretch) -> bool:
        if self.by_connection and self.context.faults:
            return False
        first, last, until = stretch.first, stretch.last, stretch.last.end
        mine = self._process(first)
        places = self.lane.digest.row[slice(*stretch.events)]
        if bool((self.processes[places] != mine).any()):
            return False
        client = self._client(first.client)
        context, name = self.context, self.lane.name
        granted = client.granted
        if granted is not None and context.broker_died_since(
            self.broker, granted.begin, granted.epoch, until
        ):
            return False
        if granted is not None and self._late(granted, stretch.earliest_us, stretch.latest_us):
            return False
        if context.paused_since(name(first.client), stretch.earliest_us - self.stop_us, until):
            return False
        calls = client.calls.get(mine)
        begun = calls is not None and calls.op == first.op  # the first of its calls
        stakes = 0
        for code, _client, lock, running in self._others(first, stretch.earliest_us):
            if self.broker_died_since(lock) or self.is_of_an_old_life(code, running):
                continue  # and so it stays
            if not ended_before(running, first):
                return False
            if context.leaving_at(name(code), self.lane.group, until) or self.leaving(code):
                return False
            if context.broker_died_since(self.broker, lock.begin, lock.epoch, until):
                return False
            if context.is_of_an_old_life(name(code), self.lane.group, running.begin, until):
                return False
            stakes += self._calls_until(
                stretch, lock.started + self.limit_us - self.clocks_us, begun
            )
        self.stakes += stakes
        if calls is None:
            calls = client.calls[mine] = Calls(last)
        calls.runs(last, anew=self.is_of_an_old_life(first.client, calls.running))
        return True

    def _calls_until(self, stretch: Stretch, until_us: int, begun: bool) -> int:
        """How many of its calls begin by then? begun: leave out the first."""
        if stretch.latest_us <= until_us:
            return stretch.calls - begun
        digest = self.lane.digest
        firsts, _lasts = digest.bounds_of_calls(stretch)
        return int((digest.rows.started[firsts[int(begun) :]] <= until_us).sum())

    def begins(self, op: Op) -> None:
        if op.client == NO_TEXT:
            return
        client = self._client(op.client)
        if op.kind is Kind.UNLOCK:
            self.unlocks.add(op)
            client.unlock = op
            client.over = min(client.over, op.begin)
        elif op.kind is Kind.DROP:
            client.drop = op
        elif op.kind is Kind.DELIVER:
            calls = client.calls.get(self._process(op))
            if calls is None or calls.op != op.op:
                self._call(op, client.granted)
            if calls is None:
                calls = client.calls[self._process(op)] = Calls(op)
            calls.runs(op, anew=self.is_of_an_old_life(op.client, calls.running))

    def _late(self, granted: Op, earliest_us: int, latest_us: int) -> bool:
        """Might one of the calls rely on an answer that came so late that the lease was over at the broker?"""
        fresh_us = (self.config.client_lease_ms + 1) * MS + self.look_us
        relies = earliest_us < granted.ended + fresh_us
        return relies and latest_us > granted.started + self.limit_us

    def _call(self, op: Op, granted: Op | None) -> None:
        if granted is not None and (
            self.broker_died_since(granted) or self._late(granted, op.started, op.started)
        ):
            return
        if self.paused_since(op.client, op.started - self.stop_us):
            return  # it may have looked at its lease before it was stopped
        for code, client, lock, running in self._others(op, op.started):
            if (
                self.leaving(code)
                or self._may_be_cut(code, lock)
                or self.broker_died_since(lock)
                or self.is_of_an_old_life(code, running)
            ):
                continue
            self.stakes += 1
            if not ended_before(running, op):
                self._two(client, lock, running, op)

    def _may_be_cut(self, code: int, lock: Op) -> bool:
        """May the lease have ended with its owner's connection?"""
        party = self.lane.name(code), self.broker
        since_us = lock.started - self.clocks_us
        return self.by_connection and self.context.fault_between(since_us, NEVER, self.now, party)

    def _two(self, client: Client, lock: Op, running: Op, op: Op) -> None:
        drop, unlock = client.drop, client.unlock
        if drop is not None and unlock is not None and unlock.begin >= running.begin:
            soon = drop.started - unlock.started <= self.config.schedule_slack_ms * MS
            if soon and drop.incarnation != NO_TEXT and drop.incarnation == running.incarnation:
                self.found(lock, running, op, drop, unlock, name="dropped-while-running")
                return
            if drop.begin < lock.begin < unlock.begin:
                self.found(lock, running, op, drop, unlock, name="late-unlock")
                return
        self.found(lock, running, op)

    def ends(self, op: Op) -> None:
        if op.kind is Kind.LOCK and op.outcome is Outcome.OK and op.client != NO_TEXT:
            client = self._client(op.client)
            client.granted = op
            if not self.unlocks.may_undo(op):
                client.lock, client.over = op, NEVER


_KINDS = (Kind.LOCK, Kind.UNLOCK, Kind.DELIVER, Kind.DROP)
TWIN = Twin("LSE-2", (*OP_COLUMNS, "process"), machine_kernel(Lane, _KINDS, lease=True))
find = TWIN.find


# ---- what breaks the clause, planted


def two_processors(trace: Trace) -> Changes:
    lease = min(trace.info.config.broker_lease_ms, trace.info.config.client_lease_ms) * MS
    for calls in trace.calls:
        if not calls:
            continue
        locks = [
            lock for lock in trace.locks(calls[0].lane) if lock.client_id == calls[0].client_id
        ]
        for row in calls:
            if (
                row.outcome is not Outcome.SUCCESS
                or row.seq_end is None
                or row.reconsume_times
                or is_manual(row)
            ):
                continue
            before = [lock for lock in locks if (lock.seq_end or 0) < row.seq_begin]
            if (
                before
                and row.started_us - before[-1].started_us < lease // 2
                and row.seq_end > row.seq_begin
            ):
                yield partial(_processed, trace, row)


def _processed(trace: Trace, row: Row) -> Planted:
    columns = {"client_id": STRANGER, "process": STRANGER, "incarnation": f"{STRANGER}#1"}
    return trace.with_more([trace.another(row, row, 1, at_end=False, **columns)], [row.seq_begin])


DEFECTS = (
    Mutant(
        "two-processors", "LSE-2", "a second client's call begins during a call", two_processors
    ),
)
