"""CMT-5 over columns: locks, unlocks and commits are few, so a machine per lane goes through them."""

from __future__ import annotations

from spark_checkers.lanes import OP_COLUMNS, LaneItems, Machine, Op, ended_before, machine_kernel
from spark_checkers.rows import MS, NEVER, NO_TEXT, Findings
from spark_checkers.twin import Twin
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

    __slots__ = ("clients", "limit_us")

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
            self.stakes += 1
            if client.others is not None and not self.broker_died_since(client.lock):
                name = "committed-while-leaving" if self.may_be_leaving(op.client) else None
                self.found(client.lock, client.unlock, client.others, op, name=name)

    def ends(self, op: Op) -> None:
        if op.kind is not Kind.LOCK or op.outcome is not Outcome.OK or op.client == NO_TEXT:
            return
        self.clients[op.client] = Client(op)
        ended = op.ended if op.ended < NEVER and op.ended else op.started
        for code, client in self.clients.items():
            if code == op.client or client.unlock is None or client.others is not None:
                continue
            if ended <= client.lock.started + self.limit_us and ended_before(client.lock, op):
                client.others = op
                self.stakes += 1  # from here on it must not commit


TWIN = Twin(
    "CMT-5", OP_COLUMNS, machine_kernel(Lane, (Kind.LOCK, Kind.UNLOCK, Kind.COMMIT), lease=True)
)
find = TWIN.find
