"""LSE-3 over columns: a stretch of calls under one fresh grant is taken whole."""

from __future__ import annotations

from functools import partial

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
)
from specs.facts.segments import MS, NO_TEXT, NONE
from specs.vocabulary import Kind, Outcome


class Client:
    """What one client knows of its lease: `last` is a grant, a refusal, or its own unlock.

    regained: its last grant, with the drop before it, while nothing but an unlock came after.
    """

    __slots__ = ("add", "answered", "drop", "last", "op", "regained")

    def __init__(self) -> None:
        self.last: Op | None = None
        self.answered = False
        self.op = NONE
        self.add: Op | None = None
        self.drop: Op | None = None
        self.regained: tuple[Op, Op] | None = None


class Lane(Machine):
    """The clients of the lane."""

    ENDS = ends_as([Kind.LOCK])

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.limit_us = (self.config.client_lease_ms + 1 + self.config.guard_slack_ms) * MS
        self.clients: dict[int, Client] = {}

    def _client(self, code: int) -> Client:
        client = self.clients.get(code)
        if client is None:
            client = self.clients[code] = Client()
        return client

    def takes(self, stretch: Stretch) -> bool:
        client = self.clients.get(stretch.first.client)
        last = client.last if client is not None else None
        if (
            client is None
            or last is None
            or last.kind is not Kind.LOCK
            or last.outcome is not Outcome.OK
            or self.are_of_two_processes(last, stretch.first)
        ):
            return False
        since = last.over_us
        if stretch.latest_us - since >= self.limit_us:
            return False
        name, group = self.lane.name(stretch.first.client), self.lane.group
        if self.context.is_of_an_old_life(name, group, last.begin, stretch.last.end):
            return False
        if client.answered:
            self.stakes += stretch.calls - (stretch.first.op == client.op)
        client.op = stretch.last.op
        return True

    def begins(self, op: Op) -> None:
        if op.client == NO_TEXT:
            return
        if op.kind is Kind.DELIVER:
            client = self._client(op.client)
            if op.op != client.op:
                client.op = op.op
                self._call(op, client)
        elif op.kind is Kind.UNLOCK:
            self._client(op.client).last = op
        elif op.kind is Kind.ADD and op.incarnation != NO_TEXT:
            self._client(op.client).add = op
        elif op.kind is Kind.DROP:
            self._client(op.client).drop = op

    def _call(self, op: Op, client: Client) -> None:
        last, answered = client.last, client.answered
        if last is not None and self.is_of_an_old_life(op.client, last):
            if not self.is_of_the_process_before(last, op):
                return
            last, answered = None, False
        if last is not None and self.are_of_two_processes(last, op):
            return
        self.stakes += answered
        if last is None:
            last = client.add
            if (
                last is None
                or last.incarnation != op.incarnation
                or self.is_of_an_old_life(op.client, last)
            ):
                return
            since = last.started
        elif last.kind is Kind.UNLOCK:
            since = last.started
        else:
            since = last.over_us
            if last.outcome is Outcome.OK:
                if op.started - since < self.limit_us:
                    return
            elif op.started <= since + self.config.guard_slack_ms * MS:
                return  # it may have looked before it was told
        if self.paused_since(op.client, since):
            return
        self.stakes += not answered
        if last.kind is Kind.UNLOCK and client.regained is not None:
            grant, drop = client.regained
            if drop.incarnation != op.incarnation and grant.begin < last.begin:
                self.found(last, op, grant, drop, name="late-unlock")
                return
        shutdown = last.kind is Kind.UNLOCK and self.may_be_leaving(op.client)
        self.found(last, op, name="called-while-leaving" if shutdown else None)

    def ends(self, op: Op) -> None:
        if op.kind is not Kind.LOCK or op.client == NO_TEXT:
            return
        client = self._client(op.client)
        if op.outcome is Outcome.OK:
            client.last, client.answered = op, True
            client.regained = None if client.drop is None else (op, client.drop)
        elif op.outcome is Outcome.REFUSED and op.code in (0, NONE):
            client.answered = True
            # A late answer to a request that is older than the grant's takes nothing away.
            if (
                client.last is None
                or client.last.kind is not Kind.LOCK
                or op.begin > client.last.begin
            ):
                client.last, client.regained = op, None


_KINDS = (Kind.LOCK, Kind.UNLOCK, Kind.DELIVER, Kind.ADD, Kind.DROP)
TWIN = Twin("LSE-3", (*OP_COLUMNS, "process"), machine_kernel(Lane, _KINDS, lease=True))
find = TWIN.find


# ---- what breaks the clause, planted


def stale_lease(trace: Trace) -> Changes:
    config = trace.info.config
    limit = (config.client_lease_ms + config.guard_slack_ms + 2) * MS
    for calls in trace.calls:
        if not calls:
            continue
        locks = [
            lock for lock in trace.locks(calls[0].lane) if lock.client_id == calls[0].client_id
        ]
        mine = [lock for lock in locks if lock.seq_begin > calls[0].seq_begin]
        before = [lock for lock in locks if lock.seq_begin < calls[0].seq_begin]
        for index, call in enumerate(calls):
            if index and before and call.started_us - (before[-1].ended_us or 0) > limit:
                gone = [lock.seq_begin for lock in mine if (lock.seq_end or 0) < call.seq_begin]
                if gone:
                    about = (before[-1].seq_begin, call.seq_begin)
                    yield partial(trace.without, gone, about)
                break


DEFECTS = (
    Mutant("stale-lease", "LSE-3", "renewals are missing, and the client goes on", stale_lease),
)
