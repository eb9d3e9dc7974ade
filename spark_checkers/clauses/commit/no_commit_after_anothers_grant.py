"""CMT-5 over columns: locks, unlocks and commits are few, so a machine per lane goes through them."""

from __future__ import annotations

import itertools
from functools import partial

from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.lanes import (
    OP_COLUMNS,
    LaneItems,
    Machine,
    Op,
    ended_before,
    ends_as,
    machine_kernel,
)
from specs.facts.segments import MS, NO_TEXT
from specs.vocabulary import Kind, Outcome


class Client:
    """One client: its last grant, its first unlock since, and the first grant of another after that."""

    __slots__ = ("lock", "others", "unlock")

    def __init__(self, lock: Op) -> None:
        self.lock = lock
        self.unlock: Op | None = None
        self.others: Op | None = None


class Lane(Machine):
    """The clients that were granted the lane, and how each lost it."""

    ENDS = ends_as([Kind.LOCK], [Outcome.OK])

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.clients: dict[int, Client] = {}
        self.limit_us = self.config.broker_lease_ms * MS - self.context.info.clock_bound_us

    def begins(self, op: Op) -> None:
        client = self.clients.get(op.client)
        if client is None:
            return
        if op.kind is Kind.UNLOCK:
            if client.unlock is None:
                client.unlock = op
        elif op.kind is Kind.COMMIT and op.incarnation != NO_TEXT and client.unlock is not None:
            if self._is_over(client):
                return
            self.stakes += 1
            if client.others is not None and not self.broker_died_since(client.lock):
                name = "committed-while-leaving" if self.may_be_leaving(op.client) else None
                self.found(client.lock, client.unlock, client.others, op, name=name)

    def ends(self, op: Op) -> None:
        if op.kind is not Kind.LOCK or op.outcome is not Outcome.OK or op.client == NO_TEXT:
            return
        self.clients[op.client] = Client(op)
        ended = op.over_us
        for code, client in self.clients.items():
            if code == op.client or client.unlock is None or client.others is not None:
                continue
            if self._is_over(client):
                continue
            if ended <= client.lock.started + self.limit_us and ended_before(client.lock, op):
                client.others = op
                self.stakes += 1  # from here on it must not commit

    def _is_over(self, client: Client) -> bool:
        """Whoever had the lease is a process that died, or a life in the group that ended."""
        lock, name = client.lock, self.lane.name(client.lock.client)
        return self.context.is_of_an_old_life(name, self.lane.group, lock.begin, self.now)


TWIN = Twin(
    "CMT-5", OP_COLUMNS, machine_kernel(Lane, (Kind.LOCK, Kind.UNLOCK, Kind.COMMIT), lease=True)
)
find = TWIN.find


# ---- what breaks the clause, planted


def late_commit(trace: Trace) -> Changes:
    lease = trace.info.config.broker_lease_ms * MS
    for lane, rows in trace.lanes.items():
        locks = trace.locks(lane)
        unlocks = [row for row in rows if row.kind is Kind.UNLOCK]
        commits = [row for row in rows if row.kind is Kind.COMMIT and row.incarnation is not None]
        for lock, other in itertools.pairwise(locks):
            between = [
                u
                for u in unlocks
                if u.client_id == lock.client_id and u.seq_begin > (lock.seq_end or 0)
            ]
            given_back = [u for u in between if u.seq_begin < (other.seq_end or 0)]
            mine = [
                c
                for c in commits
                if c.client_id == lock.client_id and c.seq_begin < other.seq_begin
            ]
            in_time = (other.ended_us or 0) <= lock.started_us + lease
            if lock.client_id != other.client_id and given_back and mine and in_time:
                yield partial(
                    lambda c, o: trace.with_more([trace.another(c, o, 1)], [o.seq_begin]),
                    mine[-1],
                    other,
                )


DEFECTS = (
    Mutant("late-commit", "CMT-5", "the old owner commits after the new one's grant", late_commit),
)
