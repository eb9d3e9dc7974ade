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

from dataclasses import dataclass

from specs.clauses.judging import Finding
from specs.clauses.premises import BROKER_LIVES, NO_WALL_CLOCK_STEP
from specs.clauses.words import at, ms
from specs.facts.findings import Findings
from specs.facts.lanes import (
    OP_COLUMNS,
    LaneItems,
    Machine,
    Op,
    each_lane,
    ended_before,
    ends_as,
)
from specs.facts.segments import MS, NO_TEXT
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
COLUMNS = OP_COLUMNS


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
                leaving = self.may_be_leaving(op.client)
                self.broken(
                    CommittedWhileLeaving if leaving else CommittedAfterwards,
                    lock=client.lock,
                    unlock=client.unlock,
                    others_lock=client.others,
                    commit=op,
                )

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


judge = each_lane(Lane, (Kind.LOCK, Kind.UNLOCK, Kind.COMMIT), lease=True)


def explain(found: CommittedAfterwards | CommittedWhileLeaving) -> str:
    unlock, other, commit = found.unlock, found.others_lock, found.commit
    return (
        f"{commit.client_id} committed {commit.value} for {commit.lane} at {at(commit)}, "
        f"{ms(commit.started_us - other.started_us)} after {other.client_id} had been granted the lane at {at(other)}; "
        f"{commit.client_id} had given it back itself at {at(unlock)}"
    )
