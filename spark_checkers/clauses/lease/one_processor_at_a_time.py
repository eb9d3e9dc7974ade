"""LSE-2 over columns: a stretch is taken whole unless another client's call may still run while it begins."""

from __future__ import annotations

from spark_checkers.grants import Unlocks
from spark_checkers.lanes import OP_COLUMNS, LaneItems, Machine, Op, Stretch, ended_before, machine_kernel
from spark_checkers.rows import MS, NO_TEXT, NONE, Findings
from spark_checkers.twin import Twin
from specs.vocabulary import Kind, Outcome


class Client:
    """One client: its last grant, the same if certain, its last call, and of all its calls the one that ends last."""

    __slots__ = ("granted", "lock", "op", "running")

    def __init__(self) -> None:
        self.granted: Op | None = None
        self.lock: Op | None = None
        self.op = NONE
        self.running: Op | None = None


class Lane(Machine):
    """The clients of the lane."""

    __slots__ = ("clients", "limit_us", "unlocks")

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.clients: dict[int, Client] = {}
        self.unlocks = Unlocks(self)
        self.limit_us = self.config.broker_lease_ms * MS

    def _client(self, code: int) -> Client:
        client = self.clients.get(code)
        if client is None:
            client = self.clients[code] = Client()
        return client

    def takes(self, stretch: Stretch) -> bool:
        code = stretch.first.client
        others = False
        for other, state in self.clients.items():
            if other == code or state.running is None:
                continue
            others = True
            over = state.lock is None or ended_before(state.running, stretch.first)
            if not over and stretch.earliest_us - state.lock.started <= self.limit_us:  # type: ignore[union-attr]
                return False
        client = self._client(code)
        granted = client.granted
        if granted is not None and self.context.broker_died_between(self.broker, granted.begin, stretch.last.end):
            return False
        if others:
            self.stakes += stretch.calls - (stretch.first.op == client.op)
        client.op = stretch.last.op
        self._runs(client, stretch.last)
        return True

    @staticmethod
    def _runs(client: Client, op: Op) -> None:
        if client.running is None or op.end >= client.running.end:
            client.running = op

    def begins(self, op: Op) -> None:
        if op.client == NO_TEXT:
            return
        if op.kind is Kind.UNLOCK:
            self.unlocks.add(op)
        elif op.kind is Kind.DELIVER:
            client = self._client(op.client)
            if op.op != client.op:
                client.op = op.op
                granted = client.granted
                if granted is None or not self.broker_died_since(granted):
                    self._call(op)
            self._runs(client, op)

    def _call(self, op: Op) -> None:
        others = False
        own = self._client(op.client).lock
        for code, state in self.clients.items():
            running, lock = state.running, state.lock
            if code == op.client or running is None:
                continue
            others = True
            if lock is None or ended_before(running, op) or op.started - lock.started > self.limit_us:
                continue
            if self.leaving(code) or self.client_died_since(code, running) or self.broker_died_since(lock):
                continue
            if own is not None and self.broker_died_since(own):
                continue
            self.found(lock, running, op)
        self.stakes += others

    def ends(self, op: Op) -> None:
        if op.kind is Kind.LOCK and op.outcome is Outcome.OK and op.client != NO_TEXT:
            client = self._client(op.client)
            client.granted = op
            client.lock = None if self.unlocks.may_undo(op) else op


TWIN = Twin("LSE-2", OP_COLUMNS, machine_kernel(Lane, (Kind.LOCK, Kind.UNLOCK, Kind.DELIVER), lease=True))
find = TWIN.find
