"""ORD-6: producers that choose by the same selector from the same queues choose the same queue for a key.

Decisions where the page leaves room:

- The first is the send that began first, of all with that topic, key and view; each later one of another producer is
  compared with it, and with no other.
- A send that was refused has chosen as well.
"""

from __future__ import annotations

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import Kind
from tests.definitions.words import Rows, chose_by_key, of, same_client, same_queue


def broken(rows: Rows, config: Config) -> bool:
    return any(
        not same_client(first, send) and not same_queue(first, send)
        for send in of(rows, Kind.SEND)
        if chose_by_key(send)
        for first in [other for other in of(rows, Kind.SEND) if _choice(other) == _choice(send)][:1]
    )


def _choice(send: Row) -> tuple[str | None, ...]:
    return (send.topic, send.sharding_key, send.view)
