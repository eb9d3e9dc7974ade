"""A client starts a listener call only under a lease that was granted at most its own limit ago.

What the client knows of its lease is its last certain answer and its own unlocks: (a) a refusal takes the lease
away (only if its request is newer than that of the grant: a late answer to an older request says nothing, and an
error code says nothing either); (b) a grant is good for the client's limit, measured from its answer in whole
milliseconds, exactly the limit included; (c) a lane that was added without any answered lock has no lease; (d) an
own unlock ends it at once. Between the guard and the call the client must not have been paused.

A process that dies, or has shut down, takes what it knew with it: the next one of its name begins without a lease,
where the rows of the death or the shutdown, of the last answer and of the call name one process, and the shutdown was
over when the client came again. Where they do not, it may be a process that goes on, and nothing is claimed. Who begins
without a lease is found by the ADD of the call's incarnation: a call of which no ADD is seen since was perhaps granted
the lane earlier. What one process of a client id was answered another one, where rows name two, does not know.

The guard looks first, and the begin of the call is recorded after it; a process can lose its core, or collect its
garbage, in between. The configuration says how long that may take (`guard_slack_ms`; nothing in virtual time): a grant
may be older by so much, and a refusal that was answered so shortly before the call takes nothing from it. An unlock
does at once: the client itself sends it, and whoever of its threads does so can wait for the one that has looked.

Two findings are told apart, for clients are built so. *Late unlock*: the unlock after which the call began was for an
incarnation that the client had dropped earlier, and it had been granted the lane anew in between. *Called while
leaving*: it was shutting down, or may have been, and gave its lanes back while their loops went on.
"""

from __future__ import annotations

from dataclasses import dataclass

from specs.clauses.judging import Finding
from specs.clauses.premises import NO_WALL_CLOCK_STEP, NOT_PAUSED, ORDERLY
from specs.clauses.rows import over_us
from specs.clauses.words import at, ms, who
from specs.facts.findings import Findings
from specs.facts.grants import refuses, takes_away
from specs.facts.lanes import OP_COLUMNS, LaneItems, Machine, Op, Stretch, each_lane, ends_as
from specs.facts.segments import MS, NO_TEXT, NONE
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "LSE-3"
TITLE = "a call under a fresh grant"
STATEMENT = (
    "A listener call starts only under a grant whose answer came at most the client's limit ago."
)
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (ORDERLY, NO_WALL_CLOCK_STEP, NOT_PAUSED)
SOURCES = ("docs/sources.md#client-leases", "docs/sources.md#orderly-loop")
KINDS = frozenset({Kind.LOCK, Kind.UNLOCK, Kind.DELIVER, Kind.ADD, Kind.DROP})
SETTINGS = ("client_lease_ms", "guard_slack_ms")
NEEDS = frozenset({Kind.DELIVER, Kind.LOCK})
EXCUSED_BY = frozenset({Kind.CRASH})
LOOKS_BACK = True
COLUMNS = (*OP_COLUMNS, "process")


@dataclass(frozen=True, slots=True)
class NoLease(Finding):
    """last: the answer, the unlock or the add after which there was no lease."""

    last: Row
    call: Row


@dataclass(frozen=True, slots=True)
class LateUnlock(NoLease):
    """drop: of an earlier incarnation. grant: after it, and before the unlock `last`."""

    drop: Row
    grant: Row


@dataclass(frozen=True, slots=True)
class CalledWhileLeaving(NoLease):
    """After the unlock of a client that was, or may have been, shutting down."""


class Client:
    """What one client knows of its lease: `last` is a grant, a refusal, or its own unlock.

    op: its last call. add, drop: the last ones. regained: its last grant, with the drop before it, while nothing but
    an unlock came after.
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
    """The clients of the lane. A stretch of calls under one fresh grant is taken whole."""

    ENDS = ends_as([Kind.LOCK])

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.look_us = self.config.guard_slack_ms * MS
        self.limit_us = (self.config.client_lease_ms + 1) * MS + self.look_us
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
        if stretch.latest_us - last.over_us >= self.limit_us:
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
                self._call_begins(op, client)
        elif op.kind is Kind.UNLOCK:
            self._client(op.client).last = op
        elif op.kind is Kind.ADD and op.incarnation != NO_TEXT:
            self._client(op.client).add = op
        elif op.kind is Kind.DROP:
            self._client(op.client).drop = op

    def _call_begins(self, op: Op, client: Client) -> None:
        last, answered = client.last, client.answered
        if last is not None and self.is_of_an_old_life(op.client, last):
            if not self.is_of_the_process_before(last, op):
                return
            last, answered = None, False
        if last is not None and self.are_of_two_processes(last, op):
            return
        self.stakes += answered
        last = self._begins_without(op, client) if last is None else last
        if last is None or self._has_lease(last, op):
            return
        of_a_lock = last.kind is Kind.LOCK
        if self.paused_since(op.client, last.over_us if of_a_lock else last.started):
            return
        self.stakes += not answered
        self._told_apart(op, last, client)

    def _begins_without(self, op: Op, client: Client) -> Op | None:
        """The ADD of the call's incarnation: since then its process has had no answer."""
        add = client.add
        if add is None or add.incarnation != op.incarnation:
            return None
        return None if self.is_of_an_old_life(op.client, add) else add

    def _has_lease(self, last: Op, op: Op) -> bool:
        """Is the lease fresh, by the last answer, or may the call's guard have looked before that came?"""
        if last.kind is not Kind.LOCK:
            return False
        age_us = op.started - last.over_us
        return age_us < self.limit_us if last.outcome is Outcome.OK else age_us <= self.look_us

    def _told_apart(self, op: Op, last: Op, client: Client) -> None:
        """The finding by its name: for what, and when, did the client give the lane back?"""
        if last.kind is not Kind.UNLOCK:
            self.broken(NoLease, last=last, call=op)
            return
        grant, drop = client.regained or (None, None)
        if (
            grant is not None
            and drop is not None
            and drop.incarnation != op.incarnation
            and grant.begin < last.begin
        ):
            self.broken(LateUnlock, last=last, call=op, drop=drop, grant=grant)
            return
        kind = CalledWhileLeaving if self.may_be_leaving(op.client) else NoLease
        self.broken(kind, last=last, call=op)

    def ends(self, op: Op) -> None:
        if op.kind is not Kind.LOCK or op.client == NO_TEXT:
            return
        client = self._client(op.client)
        if op.outcome is Outcome.OK:
            client.last, client.answered = op, True
            client.regained = None if client.drop is None else (op, client.drop)
        elif refuses(op):
            client.answered = True
            if takes_away(op, client.last):
                client.last, client.regained = op, None


judge = each_lane(Lane, KINDS, lease=True)


def explain(found: NoLease) -> str:
    last, call = found.last, found.call
    started = f"{who(call)} started offset {call.queue_offset} of {call.lane} at {at(call)}"
    if last.kind is Kind.ADD:
        return f"{started} without any lease: it had added the lane at {at(last)} and was never granted it"
    if isinstance(found, LateUnlock):
        later = ms(call.started_us - last.started_us)
        return (
            f"{started}, {later} after it had begun to give the lease back: it did so for "
            f"what it had dropped at {at(found.drop)}, and had been granted the lane anew at {at(found.grant)}"
        )
    if last.kind is Kind.UNLOCK:
        return f"{started}, {ms(call.started_us - last.started_us)} after it had begun to give the lease back"
    age = ms(call.started_us - over_us(last))
    if last.outcome is Outcome.OK:
        return f"{started}, {age} after its last grant was answered"
    return f"{started}, {age} after it had been refused the lease"
