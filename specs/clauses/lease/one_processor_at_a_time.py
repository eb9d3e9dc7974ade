"""Listener calls of two clients on one lane never overlap while the first one's lease certainly lives.

The lock is advisory: nothing stops a listener that outlives its lease. So the promise is claimed while the running
client's last grant is certainly alive (asked for at most the broker's limit before the second call begins), the
client is not shutting down and did not crash, and the broker did not crash since either client's grant: a restart
empties the lock table, and a client goes on under a grant that the broker has forgotten. An unlock that the
running client itself sends *during* its call is no excuse: that is how two clients come to overlap.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.base import (
    BROKER_LIVES,
    MS,
    NO_WALL_CLOCK_STEP,
    NOTHING,
    ORDERLY,
    Context,
    Finding,
    Judge,
    Premise,
    at,
    ended_before,
    ms,
)
from specs.clauses.grants import Unlocks
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "LSE-2"
TITLE = "one processor at a time"
STATEMENT = "No two clients run the listener of one lane at the same time while the first one's lease lives."
PARTY = Party.PAIR
KEY = Key.LANE
PREMISE = (
    ORDERLY,
    NO_WALL_CLOCK_STEP,
    BROKER_LIVES,
    Premise("no cut call", "the client of the running call neither shuts down nor crashed"),
)
SOURCES = ("docs/sources.md#lock-table", "docs/sources.md#client-leases")
KINDS = frozenset({Kind.LOCK, Kind.UNLOCK, Kind.DELIVER})
NEEDS = frozenset({Kind.DELIVER, Kind.LOCK})


@dataclass(frozen=True, slots=True)
class TwoProcessors(Finding):
    lock: Row
    running: Row
    second: Row


class _Client:
    """One client on the lane: its last grant, the same if it is certain, its last call, and the one that ends last."""

    __slots__ = ("granted", "lock", "op", "running")

    def __init__(self) -> None:
        self.granted: Row | None = None
        self.lock: Row | None = None
        self.op = -1
        self.running: Row | None = None


class LaneJudge(Judge):
    """Remembers, for each client, its last grant and the call that may still run."""

    __slots__ = ("clients", "limit_us", "unlocks")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.clients: dict[str, _Client] = {}
        self.unlocks = Unlocks(context)
        self.limit_us = self.config.broker_lease_ms * MS

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.UNLOCK:
            self.unlocks.begins(row)
            return NOTHING
        if row.kind is not Kind.DELIVER or row.client_id is None:
            return NOTHING
        client = self._client(row.client_id)
        found: Iterable[Finding] = NOTHING
        if row.op_id != client.op:
            client.op = row.op_id
            if len(self.clients) > 1:
                found = self._call_begins(row, client)
        running = client.running
        if running is None or row.seq_end is None or (running.seq_end is not None and row.seq_end >= running.seq_end):
            client.running = row
        return found

    def _client(self, name: str) -> _Client:
        client = self.clients.get(name)
        if client is None:
            client = self.clients[name] = _Client()
        return client

    def _call_begins(self, row: Row, client: _Client) -> Iterable[Finding]:
        if client.granted is not None and self.context.broker_died_since(row.broker, client.granted):
            return NOTHING
        found: list[Finding] = []
        others = False
        for name, other in self.clients.items():
            if other is client or other.running is None:
                continue
            others = True
            lock, running = other.lock, other.running
            if lock is None or ended_before(running, row) or row.started_us - lock.started_us > self.limit_us:
                continue
            context = self.context
            if context.is_leaving(name, row.group) or context.client_died_since(name, running):
                continue
            if not context.broker_died_since(row.broker, lock):
                found.append(TwoProcessors(lock, running, row))
        if others:
            self.opportunities += 1
        return found

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.LOCK and row.outcome is Outcome.OK and row.client_id is not None:
            client = self._client(row.client_id)
            client.granted = row
            client.lock = None if self.unlocks.may_undo(row) else row
        return NOTHING


judge = LaneJudge


def explain(found: TwoProcessors) -> str:
    lock, running, second = found.lock, found.running, found.second
    return (
        f"{second.client_id} began offset {second.queue_offset} of {second.lane} at {at(second)} while "
        f"{running.client_id}, who began offset {running.queue_offset} at {at(running)}, was still running it; "
        f"{running.client_id}'s lease was {ms(second.started_us - lock.started_us)} old and alive"
    )
