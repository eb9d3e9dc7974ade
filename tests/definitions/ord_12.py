"""ORD-12: for each sharding key, first deliveries to a group follow the key's sequence.

Decisions where the page leaves room:

- A message is known by its key and number, in whatever queue, and given for the first time when its first call begins.
- Of two messages of a queue that bear one number the one that was given first is compared with later ones.
- What one incarnation was given is what one client was given under one number, in one life.
- Any reset of the lane that was begun before the later call silences it.
"""

from __future__ import annotations

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import Kind
from tests.definitions.words import (
    Rows,
    began_before,
    calls,
    life,
    offset,
    same_client,
    same_lane,
    took_effect,
    was_removed,
)


def broken(rows: Rows, config: Config) -> bool:
    return config.flush != "async" and any(
        _are_of_one_key(higher, lower)
        and same_lane(higher, lower)
        and began_before(higher, lower)
        and _is_first(rows, lower)
        and (higher.key_seq or 0) > (lower.key_seq or 0)
        and offset(higher) >= offset(lower)
        and (config.consume_from == "first" or _are_of_one(rows, higher, lower))
        and not _is_second(rows, config, higher)
        and not was_removed(rows, higher, offset(lower))
        and not any(
            same_lane(reset, lower) and began_before(reset, lower)
            for reset in took_effect(rows, Kind.RESET)
        )
        for higher in calls(rows)
        for lower in calls(rows)
    )


def _are_of_one_key(first: Row, second: Row) -> bool:
    return (
        (first.group, first.topic) == (second.group, second.topic)
        and first.sharding_key is not None
        and first.sharding_key == second.sharding_key
        and first.key_seq is not None
        and second.key_seq is not None
    )


def _are_of_one(rows: Rows, first: Row, second: Row) -> bool:
    return (
        first.incarnation is not None
        and first.incarnation == second.incarnation
        and same_client(first, second)
        and life(rows, first) == life(rows, second)
    )


def _is_second(rows: Rows, config: Config, call: Row) -> bool:
    """Was another message of its queue given before under its number?"""
    return any(
        _are_of_one_key(other, call)
        and same_lane(other, call)
        and other.key_seq == call.key_seq
        and offset(other) != offset(call)
        and began_before(other, call)
        and (config.consume_from == "first" or _are_of_one(rows, other, call))
        for other in calls(rows)
    )


def _is_first(rows: Rows, call: Row) -> bool:
    return not any(
        _are_of_one_key(other, call) and other.key_seq == call.key_seq and began_before(other, call)
        for other in calls(rows)
    )
