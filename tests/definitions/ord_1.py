"""ORD-1: sends of one producer and key, each acknowledged before the next, lie in one queue in their order.

Decisions where the page leaves room:

- Compared are sends whose answer names their place and whose view says how they were chosen, by a selector that looks
  at a key; all others are left out, as if they were not there.
- The last one is that whose acknowledgement came last. Where its view is another one nothing is compared.
- A crash excuses the order from the begin of the earlier send to the end of the later one.
"""

from __future__ import annotations

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import Kind, Outcome
from tests.definitions.words import (
    Rows,
    before,
    broker_died,
    chose_by_key,
    end_of,
    is_plain,
    of,
    offset,
    same_client,
    same_queue,
)


def broken(rows: Rows, config: Config) -> bool:
    return any(_strayed(rows, _sends_before(rows, send), send) for send in _sends(rows))


def _sends(rows: Rows) -> list[Row]:
    return [
        send
        for send in of(rows, Kind.SEND)
        if send.outcome is Outcome.OK
        and send.queue_offset is not None
        and is_plain(send)
        and chose_by_key(send)
    ]


def _sends_before(rows: Rows, send: Row) -> list[Row]:
    return [
        other
        for other in _sends(rows)
        if same_client(other, send)
        and (other.topic, other.sharding_key) == (send.topic, send.sharding_key)
        and before(other, send)
    ]


def _strayed(rows: Rows, earlier: Rows, send: Row) -> bool:
    if not earlier:
        return False
    last = max(earlier, key=end_of)
    if last.view != send.view:
        return False
    if not same_queue(last, send):
        return True
    return (
        offset(send) <= offset(last)
        and (send.attempt or 1) == 1
        and not broker_died(rows, send.broker, last.seq_begin, end_of(send))
    )
