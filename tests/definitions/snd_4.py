"""SND-4: a producer tries the send of a message with a sharding key once.

Decisions where the page leaves room:

- It is tried again by a send whose number is above that of one of the same producer and message that began before.
- The key is asked of both.
"""

from __future__ import annotations

from specs.plan.config import Config
from specs.vocabulary import Kind
from tests.definitions.words import Rows, began_before, of, same_client


def broken(rows: Rows, config: Config) -> bool:
    return any(
        None is not first.message_id == second.message_id
        and same_client(first, second)
        and began_before(first, second)
        and None not in (first.sharding_key, second.sharding_key)
        and (second.attempt or 1) > (first.attempt or 1)
        for first in of(rows, Kind.SEND)
        for second in of(rows, Kind.SEND)
    )
