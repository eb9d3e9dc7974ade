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

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.incarnations import may_be_leaving
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import NO_WALL_CLOCK_STEP, NOT_PAUSED, ORDERLY
from specs.clauses.rows import are_of_two_processes, over_us
from specs.clauses.words import MS, at, ms, who
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


class _Client:
    """What one client knows of its lease: the last of a grant, a refusal, and its own unlock.

    add, drop: the last ones. grant: the last one, and the drop before it, as long as only an unlock came after it.
    """

    __slots__ = ("add", "answered", "drop", "grant", "last", "op")

    def __init__(self) -> None:
        self.last: Row | None = None
        self.answered = False
        self.op = -1
        self.add: Row | None = None
        self.drop: Row | None = None
        self.grant: tuple[Row, Row] | None = None


class LaneJudge(Judge):
    """Remembers, for each client, what it last knew of its lease."""

    __slots__ = ("clients", "limit_us", "look_us")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.clients: dict[str, _Client] = {}
        self.look_us = self.config.guard_slack_ms * MS
        self.limit_us = (self.config.client_lease_ms + 1 + self.config.guard_slack_ms) * MS

    def _client(self, name: str) -> _Client:
        client = self.clients.get(name)
        if client is None:
            client = self.clients[name] = _Client()
        return client

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.client_id is None:
            return NOTHING
        match row.kind:
            case Kind.DELIVER:
                client = self._client(row.client_id)
                if row.op_id != client.op:
                    client.op = row.op_id
                    return self._call_begins(row, client)
            case Kind.UNLOCK:
                self._client(row.client_id).last = row
            case Kind.ADD if row.incarnation is not None:
                self._client(row.client_id).add = row
            case Kind.DROP:
                self._client(row.client_id).drop = row
            case _:
                pass
        return NOTHING

    def _call_begins(self, row: Row, client: _Client) -> Iterable[Finding]:
        last, answered = client.last, client.answered
        if last is not None and self.context.is_of_an_old_life(row.client_id, row.group, last):
            if not self.context.is_of_the_process_before(last, row):
                return NOTHING
            last, answered = None, False
        if last is not None and are_of_two_processes(last, row):
            return NOTHING
        if answered:
            self.opportunities += 1
        if last is None:
            add = client.add
            if add is None or add.incarnation != row.incarnation:
                return NOTHING
            if self.context.is_of_an_old_life(row.client_id, row.group, add):
                return NOTHING
            last, since_us = add, add.started_us
        elif last.kind is Kind.UNLOCK:
            since_us = last.started_us
        else:
            since_us = over_us(last)
            age_us = row.started_us - since_us
            if age_us < self.limit_us if last.outcome is Outcome.OK else age_us <= self.look_us:
                return NOTHING
        if self.context.paused_since(row.client_id, since_us):
            return NOTHING
        if not answered:
            self.opportunities += 1
        if last.kind is Kind.UNLOCK and client.grant is not None:
            grant, drop = client.grant
            if drop.incarnation != row.incarnation and grant.seq_begin < last.seq_begin:
                return (LateUnlock(last, row, drop, grant),)
        if last.kind is Kind.UNLOCK and may_be_leaving(self.context, row.client_id, row.group):
            return (CalledWhileLeaving(last, row),)
        return (NoLease(last, row),)

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.kind is not Kind.LOCK or row.client_id is None:
            return NOTHING
        client = self._client(row.client_id)
        if row.outcome is Outcome.OK:
            client.last, client.answered = row, True
            client.grant = None if client.drop is None else (row, client.drop)
        elif row.outcome is Outcome.REFUSED and not row.code:
            client.answered = True
            last = client.last
            if last is None or last.kind is not Kind.LOCK or row.seq_begin > last.seq_begin:
                client.last, client.grant = row, None
        return NOTHING


judge = LaneJudge


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
