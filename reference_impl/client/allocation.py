"""The six ways in which the members of a group can share its queues, for `share_by`.

| strategy | how |
|---|---|
| `averagely` ("AVG") | a contiguous block each |
| `by_circle` ("CIRCLE") | dealt like cards |
| `consistent_hash` ("CONSISTENT_HASH") | by a ring of hashes: few queues move when a member comes or goes |
| `by_config(queues)` | a fixed list, whoever else is there |
| `by_machine_room(rooms)` | only brokers of these rooms, by their names `room@broker` |
| `nearby(inner, room_of_queue, room_of_member)` | one's own room first, and rooms without a member |

All members of a group need the same one.
"""

from reference_impl.core.allocation import (
    Strategy,
    averagely,
    by_circle,
    by_config,
    by_machine_room,
    consistent_hash,
    nearby,
)

__all__ = [
    "Strategy",
    "averagely",
    "by_circle",
    "by_config",
    "by_machine_room",
    "consistent_hash",
    "nearby",
]
