"""Who gets which queue: the six strategies of RocketMQ, each a pure function of the same view.

Given are this client's id, all queues of a topic and all members of the group, both sorted; a client that is not
among the members gets nothing. With m queues, c members and this client at place i:

| name | its queues |
|---|---|
| AVG | a contiguous block; the first m mod c members get one more |
| CIRCLE | i, i + c, i + 2c, ... |
| CONFIG | a fixed list, whoever else is there |
| MACHINE_ROOM | of brokers named `room@broker` in the listed rooms only: a block, and one of the remainder |
| NEARBY | those of its own room, shared there by another strategy; rooms without a member are shared by all |
| CONSISTENT_HASH | those whose hash finds it next on a ring of ten places for each member |

Members with different strategies, or with another order of the lists, get overlapping shares; the lease is what
protects them then. Source: `client/consumer/rebalance/` of apache/rocketmq.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from hashlib import md5

from specs.errors import UsageError
from specs.vocabulary import Queue

Strategy = Callable[[str, Sequence[Queue], Sequence[str]], list[Queue]]
"""(client id, sorted queues, sorted members) → the client's queues, in order."""

VIRTUAL_NODES = 10


def averagely(client_id: str, queues: Sequence[Queue], members: Sequence[str]) -> list[Queue]:
    """A contiguous block."""
    if client_id not in members:
        return []
    place = members.index(client_id)
    size, rest = divmod(len(queues), len(members))
    start = place * size + min(place, rest)
    return list(queues[start : start + size + (1 if place < rest else 0)])


def by_circle(client_id: str, queues: Sequence[Queue], members: Sequence[str]) -> list[Queue]:
    """Dealt like cards."""
    return list(queues[members.index(client_id) :: len(members)]) if client_id in members else []


def by_config(fixed: Collection[Queue]) -> Strategy:
    """A fixed list, given in the configuration."""
    return lambda client_id, queues, members: sorted(fixed)


def by_machine_room(rooms: Collection[str]) -> Strategy:
    """Only brokers of the given rooms, named `room@broker`."""

    def allocate(client_id: str, queues: Sequence[Queue], members: Sequence[str]) -> list[Queue]:
        if client_id not in members:
            return []
        place = members.index(client_id)
        inside = [queue for queue in queues if _room_of_broker(queue.broker) in rooms]
        size, rest = divmod(len(inside), len(members))
        share = inside[size * place : size * place + size]
        if rest > place:
            share.append(inside[place + size * len(members)])
        return share

    return allocate


def _room_of_broker(broker: str) -> str | None:
    parts = broker.split("@")
    return parts[0] if len(parts) == 2 else None


def nearby(
    inner: Strategy, room_of_queue: Callable[[Queue], str], room_of_member: Callable[[str], str]
) -> Strategy:
    """Own room first, and the rooms in which nobody lives."""

    def allocate(client_id: str, queues: Sequence[Queue], members: Sequence[str]) -> list[Queue]:
        if client_id not in members:
            return []
        rooms: dict[str, list[Queue]] = {}
        for queue in queues:
            rooms.setdefault(room_of_queue(queue), []).append(queue)
        inhabitants: dict[str, list[str]] = {}
        for member in members:
            inhabitants.setdefault(room_of_member(member), []).append(member)
        mine = room_of_member(client_id)
        share = inner(client_id, rooms.pop(mine, []), inhabitants[mine])
        for room in sorted(rooms.keys() - inhabitants.keys()):
            share += inner(client_id, rooms[room], members)
        return share

    return allocate


def consistent_hash(client_id: str, queues: Sequence[Queue], members: Sequence[str]) -> list[Queue]:
    """The next place on the ring, of the hash of the queue as Java prints it."""
    if client_id not in members:
        return []
    ring: dict[int, str] = {}
    replicas: dict[str, int] = {}
    for member in members:
        for _ in range(VIRTUAL_NODES):
            number = replicas.get(member, 0)
            replicas[member] = number + 1
            ring[_hash32(f"{member}-{number}")] = member
    places = sorted(ring)

    def owner(queue: Queue) -> str:
        text = f"MessageQueue [topic={queue.topic}, brokerName={queue.broker}, queueId={queue.queue_id}]"
        at = bisect_left(places, _hash32(text))
        return ring[places[at % len(places)]]

    return [queue for queue in queues if owner(queue) == client_id]


def _hash32(text: str) -> int:
    return int.from_bytes(md5(text.encode(), usedforsecurity=False).digest()[:4], "big")


STRATEGIES: Mapping[str, Strategy] = {
    "AVG": averagely,
    "CIRCLE": by_circle,
    "CONSISTENT_HASH": consistent_hash,
}
"""Those that need no configuration of their own."""


def strategy(name: str, known: Mapping[str, Strategy] = STRATEGIES) -> Strategy:
    """The strategy of that name; UsageError for any other."""
    try:
        return known[name]
    except KeyError:
        raise UsageError(f"unknown strategy {name!r}; known are {', '.join(known)}") from None
