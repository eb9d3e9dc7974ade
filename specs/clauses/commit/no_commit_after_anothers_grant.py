"""A client that gave a lane back does not commit on it once another client has been granted it.

Claimed where the client itself ended its lease: it had a grant, began to unlock, and somebody else was granted the
lane while the first grant would certainly still have lived. A lease that ran out, or that the broker forgot, is no
fault of the client, which may not know; nor is a second grant without any unlock (that is LSE-1). The next process of
its name, or its next life in the group, knows nothing of what it gave back; where the unlock and the commit name one
incarnation, one life did both. A commit that was refused is none: the broker fenced it off.

RocketMQ's shutdown frees its leases before it reports its last offsets, in every version; profiles allow that. So what
a client does while it shuts down its work in the group, or where nobody records who does, is a finding of its own:
`committed-while-leaving`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.incarnations import may_be_leaving
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import BROKER_LIVES, NO_WALL_CLOCK_STEP
from specs.clauses.rows import ended_before, over_us
from specs.clauses.words import MS, at, ms
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "CMT-5"
TITLE = "no commit after another's grant"
STATEMENT = (
    "No client commits on a lane after another client's grant, unless its own lease ended by expiry or a broker's "
    "restart."
)
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (NO_WALL_CLOCK_STEP, BROKER_LIVES)
SOURCES = ("docs/sources.md#offsets", "docs/sources.md#client-leases")
KINDS = frozenset({Kind.LOCK, Kind.UNLOCK, Kind.COMMIT})
SETTINGS = ("broker_lease_ms",)
NEEDS = frozenset({Kind.COMMIT, Kind.LOCK})
EXCUSED_BY_ANOTHER_LIFE = frozenset({Kind.JOIN, Kind.LEAVE})


@dataclass(frozen=True, slots=True)
class CommittedAfterwards(Finding):
    lock: Row
    unlock: Row
    others_lock: Row
    commit: Row


@dataclass(frozen=True, slots=True)
class CommittedWhileLeaving(Finding):
    """Likewise, by a client that was, or may have been, shutting down."""

    lock: Row
    unlock: Row
    others_lock: Row
    commit: Row


class _Client:
    """One client: its last grant, its first unlock since, and the first grant of another after that."""

    __slots__ = ("lock", "others_lock", "unlock")

    def __init__(self) -> None:
        self.lock: Row | None = None
        self.unlock: Row | None = None
        self.others_lock: Row | None = None


class LaneJudge(Judge):
    """Remembers, for each client that was granted the lane, how it lost it."""

    __slots__ = ("clients", "limit_us")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.clients: dict[str, _Client] = {}
        # Certainly alive is a grant only when no error of the clocks makes it older.
        self.limit_us = self.config.broker_lease_ms * MS - context.info.clock_bound_us

    def begins(self, row: Row) -> Iterable[Finding]:
        client = self.clients.get(row.client_id or "")
        if client is None or client.lock is None:
            return NOTHING
        if row.kind is Kind.UNLOCK:
            if client.unlock is None:
                client.unlock = row
            return NOTHING
        # A commit outside of any incarnation is a raw request of somebody who works on nothing.
        other, unlock = client.others_lock, client.unlock
        if row.kind is not Kind.COMMIT or row.incarnation is None or unlock is None:
            return NOTHING
        if self._is_over(client.lock):
            return NOTHING
        self.opportunities += 1
        if other is None or self.context.broker_died_since(row.broker, client.lock):
            return NOTHING
        if may_be_leaving(self.context, row.client_id, row.group):
            return (CommittedWhileLeaving(client.lock, unlock, other, row),)
        return (CommittedAfterwards(client.lock, unlock, other, row),)

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.kind is not Kind.LOCK or row.outcome is not Outcome.OK or row.client_id is None:
            return NOTHING
        mine = self.clients.get(row.client_id)
        if mine is None:
            mine = self.clients[row.client_id] = _Client()
        mine.lock, mine.unlock, mine.others_lock = row, None, None
        for client in self.clients.values():
            lock = client.lock
            if (
                client is mine
                or lock is None
                or client.unlock is None
                or client.others_lock is not None
            ):
                continue
            in_time = over_us(row) <= lock.started_us + self.limit_us
            if in_time and ended_before(lock, row) and not self._is_over(lock):
                client.others_lock = row
                self.opportunities += 1  # from here on it must not commit
        return NOTHING

    def _is_over(self, lock: Row) -> bool:
        """Does whoever was granted this live no more?"""
        return self.context.is_of_an_old_life(lock.client_id, lock.group, lock)


judge = LaneJudge


def explain(found: CommittedAfterwards | CommittedWhileLeaving) -> str:
    unlock, other, commit = found.unlock, found.others_lock, found.commit
    return (
        f"{commit.client_id} committed {commit.value} for {commit.lane} at {at(commit)}, "
        f"{ms(commit.started_us - other.started_us)} after {other.client_id} had been granted the lane at {at(other)}; "
        f"{commit.client_id} had given it back itself at {at(unlock)}"
    )
