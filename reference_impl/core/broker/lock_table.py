"""Who holds the lease of which lane, to the millisecond.

Two tables decide everything: what a lock request does and what an unlock does, in each of the five situations
that a lane can be in as its asker sees it. A lease is expired when it is *strictly older* than the limit: at
exactly the limit it still lives.

The lease is advice. It is not written to disk (a restart empties the table), not tied to a connection (a client
that disconnects or unregisters keeps its leases until they expire), not checked by pull, commit or send, and
says nothing about topics that exist. Identity is the client id: two processes with one id both own the lane.
Source: docs/sources.md#lock-table (RebalanceLockManager).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import ClassVar

from specs.vocabulary import Queue


class Situation(Enum):
    """A lane, as the client sees it that asks."""

    FREE = "nobody holds it"
    OWN_LIVE = "the asker holds it"
    OWN_EXPIRED = "the asker held it, and the limit has passed"
    OTHER_LIVE = "somebody else holds it"
    OTHER_EXPIRED = "somebody else held it, and the limit has passed"


class Action(Enum):
    """What the table does with the lane's entry."""

    TAKE = "the asker becomes the owner, from now"
    RENEW = "the owner's lease counts from now"
    REFUSE = "nothing changes; not granted"
    FREE = "the entry is removed"
    IGNORE = "nothing changes"


ON_LOCK: Mapping[Situation, Action] = MappingProxyType(
    {
        Situation.FREE: Action.TAKE,
        Situation.OWN_LIVE: Action.RENEW,
        Situation.OWN_EXPIRED: Action.RENEW,
        Situation.OTHER_LIVE: Action.REFUSE,
        Situation.OTHER_EXPIRED: Action.TAKE,
    }
)
ON_UNLOCK: Mapping[Situation, Action] = MappingProxyType(
    {
        Situation.FREE: Action.IGNORE,
        Situation.OWN_LIVE: Action.FREE,
        Situation.OWN_EXPIRED: Action.FREE,
        Situation.OTHER_LIVE: Action.IGNORE,
        Situation.OTHER_EXPIRED: Action.IGNORE,
    }
)


class Lease:
    """One lane's entry: its owner and when the lease was last granted or renewed, in ms of the broker's clock."""

    __slots__ = ("client_id", "since_ms")

    def __init__(self, client_id: str, since_ms: int) -> None:
        self.client_id = client_id
        self.since_ms = since_ms


class LockTable:
    """The leases of one broker, by group and queue. limit_ms: how old a lease may be and still live."""

    on_lock: ClassVar[Mapping[Situation, Action]] = ON_LOCK
    on_unlock: ClassVar[Mapping[Situation, Action]] = ON_UNLOCK

    def __init__(self, limit_ms: int) -> None:
        self.limit_ms = limit_ms
        self._groups: dict[str, dict[Hashable, Lease]] = {}

    def lock_batch(
        self, now_ms: int, group: str, client_id: str, queues: Iterable[Queue]
    ) -> list[Queue]:
        """The subset of the queues that is now the client's, in the order asked."""
        return [queue for queue in queues if self.lock(now_ms, group, client_id, queue)]

    def lock(self, now_ms: int, group: str, client_id: str, queue: Queue) -> bool:
        """Whether the lane is now the client's."""
        leases = self.leases_of(group)
        lease = leases.get(self.key(queue))
        match self.on_lock[self.situation(now_ms, lease, client_id)]:
            case Action.TAKE:
                leases[self.key(queue)] = self.take(now_ms, client_id, lease)
                return True
            case Action.RENEW:
                assert lease is not None
                self.renew(now_ms, lease)
                return True
            case _:
                self.refuse(now_ms, lease)
                return False

    def unlock_batch(
        self, now_ms: int, group: str, client_id: str, queues: Iterable[Queue]
    ) -> list[Queue]:
        """Give the queues back; the ones that this freed. Whoever is not the owner changes nothing."""
        leases = self.leases_of(group)
        freed = []
        for queue in queues:
            situation = self.situation(now_ms, leases.get(self.key(queue)), client_id)
            if self.on_unlock[situation] is Action.FREE:
                del leases[self.key(queue)]
                freed.append(queue)
        return freed

    def all_expired(self, now_ms: int, group: str) -> bool:
        """Whether the group holds no live lease on this broker: true also for a group without any entry."""
        return all(self.is_expired(now_ms, lease) for lease in self.leases_of(group).values())

    def situation(self, now_ms: int, lease: Lease | None, client_id: str) -> Situation:
        if lease is None:
            return Situation.FREE
        if lease.client_id == client_id:
            return Situation.OWN_EXPIRED if self.is_expired(now_ms, lease) else Situation.OWN_LIVE
        return Situation.OTHER_EXPIRED if self.is_expired(now_ms, lease) else Situation.OTHER_LIVE

    def is_expired(self, now_ms: int, lease: Lease) -> bool:
        return now_ms - lease.since_ms > self.limit_ms

    def leases_of(self, group: str) -> dict[Hashable, Lease]:
        """The group's leases; another group's never conflict with them."""
        return self._groups.setdefault(group, {})

    def key(self, queue: Queue) -> Hashable:
        """What tells one queue's lease from another's: topic, broker name as the client wrote it, queue."""
        return queue

    def take(self, now_ms: int, client_id: str, lease: Lease | None) -> Lease:
        """The new owner's lease. lease: the entry that it replaces, if there was one."""
        return Lease(client_id, now_ms)

    def renew(self, now_ms: int, lease: Lease) -> None:
        lease.since_ms = now_ms

    def refuse(self, now_ms: int, lease: Lease | None) -> None:
        """A refusal leaves the owner's lease as it was, age included."""
