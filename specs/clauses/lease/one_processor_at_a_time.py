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

from collections.abc import Iterator
from dataclasses import dataclass

from specs.clauses.judging import Finding
from specs.clauses.premises import BROKER_LIVES, NO_WALL_CLOCK_STEP, ORDERLY, Premise
from specs.clauses.words import at, ms
from specs.facts.findings import Findings
from specs.facts.grants import Unlocks
from specs.facts.lanes import (
    OP_COLUMNS,
    LaneItems,
    Machine,
    Op,
    Stretch,
    each_lane,
    ended_before,
    ends_as,
)
from specs.facts.segments import MS, NEVER, NO_TEXT, NONE
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
COLUMNS = (*OP_COLUMNS, "process")


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


class Calls:
    """The calls of one process: the last one, and of all of them the one that ends last."""

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
    """One client on the lane, and the calls of its processes.

    granted: its last grant; lock: the last one that is certain. over: when (seq) it first gave the lane back since,
    which ended the lease for whatever call begins after it. drop, unlock: its last ones.
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
    """The clients of the lane. A stretch is taken whole unless another call may still run while it begins."""

    ENDS = ends_as([Kind.LOCK], [Outcome.OK])

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.clients: dict[int, Client] = {}
        self.unlocks = Unlocks(self)
        self.limit_us = self.config.broker_lease_ms * MS
        self.look_us = self.config.guard_slack_ms * MS
        self.stop_us = self.look_us or -1  # at one moment nobody can be stopped in between
        self.clocks_us = self.context.info.clock_bound_us
        self.by_connection = may_end_with_its_connection(self.config)
        self.processes = lane.digest.rows.text("process")

    def _client(self, code: int) -> Client:
        client = self.clients.get(code)
        if client is None:
            client = self.clients[code] = Client()
        return client

    def _process(self, op: Op) -> int:
        return int(self.processes[op.place])

    def _others(self, op: Op, at_us: int) -> Iterator[tuple[int, Client, Op, Op]]:
        """The calls beside which this one would count then: of whom, its lock, and the one that ends last.

        Two of one client id count where both say of which process they are, and both have ended: one without an end
        may be of the process before.
        """
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
        if granted is not None and self._was_late(granted, stretch.earliest_us, stretch.latest_us):
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
                self._call_begins(op, client.granted)
            if calls is None:
                calls = client.calls[self._process(op)] = Calls(op)
            calls.runs(op, anew=self.is_of_an_old_life(op.client, calls.running))

    def _was_late(self, granted: Op, earliest_us: int, latest_us: int) -> bool:
        """Might one of the calls rely on an answer that came so late that the lease was over at the broker?"""
        fresh_us = (self.config.client_lease_ms + 1) * MS + self.look_us
        relies = earliest_us < granted.ended + fresh_us
        return relies and latest_us > granted.started + self.limit_us

    def _call_begins(self, op: Op, granted: Op | None) -> None:
        if granted is not None and (
            self.broker_died_since(granted) or self._was_late(granted, op.started, op.started)
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
                self._told_apart(client, lock, running, op)

    def _may_be_cut(self, code: int, lock: Op) -> bool:
        """May the lease have ended with its owner's connection?"""
        party = self.lane.name(code), self.broker
        since_us = lock.started - self.clocks_us
        return self.by_connection and self.context.fault_between(since_us, NEVER, self.now, party)

    def _told_apart(self, client: Client, lock: Op, running: Op, second: Op) -> None:
        """The finding by its name: has the client of the running call dropped the lane, and given it back?"""
        drop, unlock = client.drop, client.unlock
        if drop is not None and unlock is not None and unlock.begin >= running.begin:
            soon = drop.started - unlock.started <= self.config.schedule_slack_ms * MS
            kind: type[DroppedWhileRunning | LateUnlock] | None = None
            if soon and drop.incarnation != NO_TEXT and drop.incarnation == running.incarnation:
                kind = DroppedWhileRunning
            elif drop.begin < lock.begin < unlock.begin:
                kind = LateUnlock
            if kind is not None:
                self.broken(
                    kind, lock=lock, running=running, second=second, drop=drop, unlock=unlock
                )
                return
        self.broken(TwoProcessors, lock=lock, running=running, second=second)

    def ends(self, op: Op) -> None:
        if op.kind is Kind.LOCK and op.outcome is Outcome.OK and op.client != NO_TEXT:
            client = self._client(op.client)
            client.granted = op
            if not self.unlocks.may_undo(op):
                client.lock, client.over = op, NEVER


judge = each_lane(Lane, KINDS, lease=True)


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
