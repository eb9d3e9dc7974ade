"""Listener calls of two clients on one lane never overlap while the first one's lease certainly lives.

The lock is advisory: nothing stops a listener that outlives its lease. So the promise is claimed while the running
client's last certain grant is alive (asked for at most the broker's limit before the second call begins), the
client is not shutting down and did not crash since its call began, and the broker did not crash since either client's
grant: a restart empties the lock table, and a client goes on under a grant that the broker has forgotten. An unlock
that the running client itself sends *during* its call is no excuse: that is how two clients come to overlap. Nor is it
one when the client asks for the lane again meanwhile. An unlock that it sent before its call began has ended the lease.

The second client looks at its lease before it calls. One that was stopped between the two begins a call, as soon as
it goes on, under a lease that it has lost meanwhile, and no client can prevent that: so a call within the time from
look to call (`guard_slack_ms`, exactly that time included; none where it is 0) after a stop is not judged. Nor is one
whose grant was answered so late that the lease is over at the broker, and was still fresh to the client, by its own
limit, that time before the call.

Some servers end a lease with its connection (RabbitMQ's single active consumer), and give the lane to the next one
while the listener runs on: so of another system than RocketMQ nothing is claimed where anything was injected since the
running client's grant.

Two processes under one client id are two clients that share a lease: the broker can't tell them apart. They are told
apart by the column `process`, where both calls have it and both have ended.

Two findings are told apart from the rest, for clients are built so. *Dropped while running*: the running client has
dropped the lane, and given it back, before its call was over (some tell the drop only once they have given it back).
*Late unlock*: it gave the lane back for an incarnation that it had dropped earlier, after it had been granted the lane
anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.grants import Unlocks
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.links import FOR_EVER_US
from specs.clauses.premises import BROKER_LIVES, NO_WALL_CLOCK_STEP, ORDERLY, Premise
from specs.clauses.rows import ended_before, over_us
from specs.clauses.words import MS, at, ms
from specs.history.row import Row
from specs.plan.config import ROCKETMQ, Config
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "LSE-2"
TITLE = "one processor at a time"
STATEMENT = (
    "No two clients, nor two processes of one client id, run the listener of one lane at the same time before "
    "the first one's lease has run out; giving it back in mid-call is no excuse."
)
PARTY = Party.PAIR
KEY = Key.LANE
PREMISE = (
    ORDERLY,
    NO_WALL_CLOCK_STEP,
    BROKER_LIVES,
    Premise(
        "no cut call",
        "the client of the running call neither shuts down nor crashed",
        told_by=frozenset({Kind.CRASH, Kind.LEAVE}),
    ),
    Premise(
        "connected",
        "nothing was injected since the running client's grant, unless the system is RocketMQ: others may end a lease "
        "with its connection",
    ),
    Premise(
        "answered in time", "the second call does not follow a grant whose answer came too late"
    ),
    Premise(
        "not stopped in between",
        "the second client did not go on, from a recorded stop, just before its call",
        told_by=frozenset({Kind.PAUSE}),
    ),
)
SOURCES = ("docs/sources.md#client-leases", "docs/sources.md#lock-table")
KINDS = frozenset({Kind.LOCK, Kind.UNLOCK, Kind.DELIVER, Kind.DROP})
SETTINGS = ("broker_lease_ms", "client_lease_ms", "guard_slack_ms")
NEEDS = frozenset({Kind.DELIVER, Kind.LOCK})
NAMED_BY = frozenset({Kind.DROP})


def may_end_with_its_connection(config: Config) -> bool:
    """Does the server perhaps end a lease with the connection of its owner?"""
    return config.system != ROCKETMQ


EXCUSED_IF = {Kind.FAULT: may_end_with_its_connection}


@dataclass(frozen=True, slots=True)
class TwoProcessors(Finding):
    lock: Row
    running: Row
    second: Row


@dataclass(frozen=True, slots=True)
class DroppedWhileRunning(TwoProcessors):
    """drop: by the running client, of the incarnation whose call runs. unlock: its own, after that."""

    drop: Row
    unlock: Row


@dataclass(frozen=True, slots=True)
class LateUnlock(TwoProcessors):
    """drop: by the running client, of an earlier incarnation. unlock: its own, after the grant that followed."""

    drop: Row
    unlock: Row


class _Client:
    """One client on the lane.

    granted: its last grant; lock: the last one that is certain. given_back: its first unlock since, which ended the
    lease for whatever call begins after it. drop, unlock: its last ones. calls: of each process the last call, and the
    one that ends last.
    """

    __slots__ = ("calls", "drop", "given_back", "granted", "lock", "unlock")

    def __init__(self) -> None:
        self.granted: Row | None = None
        self.lock: Row | None = None
        self.given_back: Row | None = None
        self.drop: Row | None = None
        self.unlock: Row | None = None
        self.calls: dict[str | None, _Calls] = {}


class _Calls:
    """The calls of one process: the last one, and of all of them the one that ends last."""

    __slots__ = ("op", "running")

    def __init__(self, row: Row) -> None:
        self.op = row.op_id
        self.running = row


class LaneJudge(Judge):
    """Remembers, for each client, its last grant and the calls that may still run."""

    __slots__ = (
        "bound_us",
        "by_connection",
        "clients",
        "fresh_us",
        "limit_us",
        "look_us",
        "slack_us",
        "stop_us",
        "unlocks",
    )

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.clients: dict[str, _Client] = {}
        self.unlocks = Unlocks(context)
        self.limit_us = self.config.broker_lease_ms * MS
        self.look_us = self.config.guard_slack_ms * MS
        self.stop_us = self.look_us or -1  # at one moment nobody can be stopped in between
        self.fresh_us = (self.config.client_lease_ms + 1) * MS + self.look_us
        self.slack_us = self.config.schedule_slack_ms * MS
        self.bound_us = context.info.clock_bound_us
        self.by_connection = may_end_with_its_connection(self.config)

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.client_id is None:
            return NOTHING
        client = self._client(row.client_id)
        if row.kind is Kind.DROP:
            client.drop = row
        elif row.kind is Kind.UNLOCK:
            self.unlocks.begins(row)
            client.unlock = row
            client.given_back = client.given_back or row
        elif row.kind is Kind.DELIVER:
            return self._delivered(row, client)
        return NOTHING

    def _delivered(self, row: Row, client: _Client) -> Iterable[Finding]:
        calls = client.calls.get(row.process)
        found: Iterable[Finding] = NOTHING
        if calls is None or row.op_id != calls.op:
            found = self._call_begins(row, client)
        if calls is None:
            client.calls[row.process] = _Calls(row)
            return found
        calls.op = row.op_id
        running = calls.running
        if (
            row.seq_end is None
            or (running.seq_end is not None and row.seq_end >= running.seq_end)
            or self.context.is_of_an_old_life(row.client_id, row.group, running)
        ):
            calls.running = row
        return found

    def _client(self, name: str) -> _Client:
        client = self.clients.get(name)
        if client is None:
            client = self.clients[name] = _Client()
        return client

    def _call_begins(self, row: Row, client: _Client) -> Iterable[Finding]:
        granted = client.granted
        if granted is not None and (
            self.context.broker_died_since(row.broker, granted)
            or self._was_answered_late(granted, row)
        ):
            return NOTHING
        if self.context.paused_since(row.client_id, row.started_us - self.stop_us):
            return NOTHING
        found: list[Finding] = []
        for name, other in self.clients.items():
            if other.lock is None or not self._holds(name, other.lock, row):
                continue
            for process, calls in other.calls.items():
                running = calls.running
                if other is client and (None in (process, row.process) or process == row.process):
                    continue
                back = other.given_back
                if back is not None and back.seq_begin < running.seq_begin:
                    continue
                if self.context.is_of_an_old_life(name, row.group, running):
                    continue
                if other is client and None in (running.seq_end, row.seq_end):
                    continue  # the second may be the successor of a process whose end nobody saw
                self.opportunities += 1
                if not ended_before(running, row):
                    found.append(self._told_apart(other, other.lock, running, row))
        return found

    def _was_answered_late(self, granted: Row, row: Row) -> bool:
        """Is the grant fresh to the client when the call begins, though it may have expired at the broker?"""
        fresh = row.started_us - over_us(granted) < self.fresh_us
        return fresh and row.started_us - granted.started_us > self.limit_us

    def _holds(self, name: str, lock: Row, row: Row) -> bool:
        """Does the client's grant certainly live when the call `row` begins, and does it work as always?"""
        if row.started_us - lock.started_us + self.bound_us > self.limit_us:
            return False
        since_us = lock.started_us - self.bound_us
        if self.by_connection and self.context.fault_between(
            since_us, FOR_EVER_US, name, row.broker
        ):
            return False
        return not self.context.is_leaving(name, row.group) and not self.context.broker_died_since(
            row.broker, lock
        )

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.LOCK and row.outcome is Outcome.OK and row.client_id is not None:
            client = self._client(row.client_id)
            client.granted = row
            if not self.unlocks.may_undo(row):
                client.lock, client.given_back = row, None
        return NOTHING

    def _told_apart(self, client: _Client, lock: Row, running: Row, second: Row) -> Finding:
        """The finding by its name: has the client of the running call dropped the lane, and given it back?"""
        drop, unlock = client.drop, client.unlock
        if drop is None or unlock is None or unlock.seq_begin < running.seq_begin:
            return TwoProcessors(lock, running, second)
        in_time = drop.started_us - unlock.started_us <= self.slack_us
        if in_time and drop.incarnation is not None and drop.incarnation == running.incarnation:
            return DroppedWhileRunning(lock, running, second, drop, unlock)
        if drop.seq_begin < lock.seq_begin < unlock.seq_begin:
            return LateUnlock(lock, running, second, drop, unlock)
        return TwoProcessors(lock, running, second)


judge = LaneJudge


def explain(found: TwoProcessors) -> str:
    lock, running, second = found.lock, found.running, found.second
    if second.client_id == running.client_id:
        return (
            f"{second.client_id}'s process {second.process} began offset {second.queue_offset} of {second.lane} at "
            f"{at(second)} while its process {running.process}, which began offset {running.queue_offset} at "
            f"{at(running)}, was still running it; they share one client id, and its lease"
        )
    why = ""
    if isinstance(found, DroppedWhileRunning | LateUnlock):
        which = (
            "the lane" if isinstance(found, DroppedWhileRunning) else "an earlier incarnation of it"
        )
        why = f", dropped {which} at {at(found.drop)} and gave it back at {at(found.unlock)}"
    return (
        f"{second.client_id} began offset {second.queue_offset} of {second.lane} at {at(second)} while "
        f"{running.client_id}, who began offset {running.queue_offset} at {at(running)}{why}, was still running it; "
        f"{running.client_id}'s lease, asked for {ms(second.started_us - lock.started_us)} before, had not run out"
    )
