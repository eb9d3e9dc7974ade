"""LSE-16 over columns: lock and drop rows are few, and of a stretch only the last call may outlive a drop."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import ANOTHER, STRANGER, Changes, Mutant, Planted, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.grants import refuses
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
from specs.facts.segments import MS, NEVER, NO_TEXT
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome

LATE_MS = 20_000


class Client:
    """Its drop of the lane, its last unlock, and of its calls and dead letters the one that ends last.

    busy: the one that ran at the drop. freed: its unlock, until it adds the lane anew. shared: of each of its processes
    that has not dropped the lane, what it did there last.
    """

    __slots__ = ("busy", "drop", "freed", "shared", "unlock", "work")

    def __init__(self) -> None:
        self.shared: dict[int, Op] = {}
        self.freed: Op | None = None
        self.busy: Op | None = None
        self.drop: Op | None = None
        self.unlock: Op | None = None
        self.work: Op | None = None


class Lane(Machine):
    """The last grant, and the clients of the lane."""

    ENDS = ends_as([Kind.LOCK])

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.clients: dict[int, Client] = {}
        self.lock: Op | None = None
        self.limit_us = self.config.broker_lease_ms * MS
        self.slack_us = self.config.schedule_slack_ms * MS
        self.interval_us = max(self.config.rebalance_ms, LATE_MS) * MS
        self.clocks_us = self.context.info.clock_bound_us
        self.processes = lane.digest.rows.own_process

    def _works(self, op: Op) -> None:
        client = self.clients.setdefault(op.client, Client())
        if client.work is None or op.end >= client.work.end:
            client.work = op

    def takes(self, stretch: Stretch) -> bool:
        self._works(stretch.last)
        self._is_at_work(stretch.last)
        return True

    def _is_at_work(self, op: Op) -> None:
        process = int(self.processes[op.place])
        if process != NO_TEXT:
            self.clients[op.client].shared[process] = op

    def _drops(self, client: Client, op: Op) -> None:
        """One of the client's processes drops the lane; where another one goes on with it, they keep the lease."""
        process = int(self.processes[op.place])
        client.shared.pop(process, None)
        others = client.shared.values() if process != NO_TEXT else ()
        if any(not self.is_of_an_old_life(op.client, each) for each in others):
            client.drop = None
            return
        client.drop = op
        client.busy = None if client.work is None or ended_before(client.work, op) else client.work

    def begins(self, op: Op) -> None:
        if op.client == NO_TEXT:
            return
        client = self.clients.setdefault(op.client, Client())
        if op.kind is Kind.DROP:
            self._drops(client, op)
        elif op.kind in (Kind.ADD, Kind.LOCK):
            client.drop = None
            if op.kind is Kind.ADD:
                client.freed = None
                self._is_at_work(op)
        elif op.kind is Kind.UNLOCK:
            client.unlock = client.freed = op
        else:
            self._works(op)
            if op.kind is Kind.DELIVER:
                self._is_at_work(op)

    def ends(self, op: Op) -> None:
        if op.kind is not Kind.LOCK or op.client == NO_TEXT:
            return
        granted = op.outcome is Outcome.OK
        if granted or refuses(op):
            drop = self._awaited(op)
            self.stakes += drop is not None
            if drop is not None and not granted:
                self._refused(drop, op)
        if granted:
            self.lock = op

    def _awaited(self, op: Op) -> Op | None:
        """The drop of the last owner, whose lease lives on if it was not given back."""
        lock = self.lock
        if lock is None or lock.client == op.client or op.ended >= NEVER:
            return None
        drop = self.clients[lock.client].drop
        if drop is None or not ended_before(lock, drop) or not ended_before(drop, op):
            return None
        if op.ended - lock.started + self.clocks_us > self.limit_us or self.broker_died_since(lock):
            return None
        if self.client_died_since(lock.client, lock) or self.paused_since(
            lock.client, drop.started
        ):
            return None
        return drop

    def _refused(self, drop: Op, op: Op) -> None:
        lock, owner = self.lock, self.clients[drop.client]
        if lock is None or (owner.unlock is not None and owner.unlock.begin > lock.begin):
            return
        since = drop.started
        if owner.work is not None:
            if not ended_before(owner.work, op):
                return
            since = max(since, owner.work.over_us)
        late = op.started - since - self.slack_us
        if late - self.clocks_us <= 0:
            return
        after = (
            drop.started + self.config.delay_bound_ms * MS
        )  # what was over by the drop is no matter
        if self.was_disturbed(drop.client, Kind.UNLOCK, after, since + self.slack_us):
            return  # it could not be sent
        if owner.freed is not None and owner.freed.begin < lock.begin:
            self.found(lock, drop, op, owner.freed, name="taken-again")
        elif late > self.interval_us:
            self.found(lock, drop, op)
        elif owner.busy is None:
            self.found(lock, drop, op, name="late")
        else:
            self.found(lock, drop, op, owner.busy, name="late-after-call")


_KINDS = (Kind.LOCK, Kind.UNLOCK, Kind.ADD, Kind.DROP, Kind.DELIVER, Kind.DEAD_LETTER)
TWIN = Twin("LSE-16", OP_COLUMNS, machine_kernel(Lane, _KINDS, lease=True))
find = TWIN.find


# ---- what breaks the clause, planted


def lease_kept(trace: Trace) -> Changes:
    config = trace.info.config
    for lock in trace.of(Kind.LOCK):
        late = planting.later(trace, lock, config.schedule_slack_ms * MS)
        asked = 0 if late is None else (late.ended_us or late.started_us) - (lock.ended_us or 0)
        if late is not None and asked < (config.broker_lease_ms // 2) * MS:
            yield partial(_kept, trace, lock, late)


def _kept(trace: Trace, lock: Row, late: Row) -> Planted:
    granted = planting.elsewhere(trace, lock, lock, STRANGER, Outcome.OK)
    drop = planting.elsewhere(trace, lock, lock, STRANGER, Outcome.OK)
    drop = drop._replace(
        kind=Kind.DROP,
        seq_begin=granted.seq_begin + 2,
        seq_end=granted.seq_begin + 2,
        incarnation=f"{STRANGER}#1",
    )
    return trace.with_more(
        [granted, drop, planting.elsewhere(trace, lock, late, ANOTHER, Outcome.REFUSED)]
    )


DEFECTS = (Mutant("lease-kept", "LSE-16", "a dropped lane is not given back", lease_kept),)
