"""ORD-11: in the key-ordered mode, calls of one key never overlap, follow the queue, and hold back no other key.

Decisions where the page leaves room:

- Nothing is compared across a DROP, though the incarnation's name goes on.
- A call begins with its lowest message of the key. It goes back where that lies below all of the key's call before, and
  goes beyond what is owed of a call where it lies above the lowest of that.
- A message came again if a call with it began after its own had ended, and before the one in question did.
- Given up is a message whose dead letter was acknowledged before the call in question began. It failed if it names its
  incarnation, and ended in any other way before the key's next call after that of the message began.
- Once an operator has moved the offset in the incarnation's life nothing is held back for certain.
- Held back is what begins late after a call of any message, with a key or without one, that lies behind.
"""

from __future__ import annotations

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import Kind, Outcome
from tests.definitions.words import (
    Rows,
    adds,
    asks_again,
    before,
    began_before,
    between,
    calls,
    is_about,
    moved_in_its_life,
    of,
    offset,
    same_call,
    same_incarnation,
    took_effect,
    was_reset,
)


def broken(rows: Rows, config: Config) -> bool:
    return config.mode == "key_ordered" and any(
        _is_out_of_turn(rows, config, first, second) or _is_held_back(rows, config, first, second)
        for first in calls(rows)
        for second in calls(rows)
        if second.sharding_key is not None
        and began_before(first, second)
        and not same_call(first, second)
        and same_incarnation(rows, first, second)
        and not was_reset(rows, first, second)
        and not _dropped_between(rows, first, second)
    )


def _dropped_between(rows: Rows, first: Row, second: Row) -> bool:
    return any(
        between(first, drop, second) and same_incarnation(rows, drop, second)
        for drop in took_effect(rows, Kind.DROP)
    )


def _of_key(rows: Rows, call: Row) -> list[Row]:
    """The call's messages of that key."""
    return [
        row for row in calls(rows) if same_call(row, call) and row.sharding_key == call.sharding_key
    ]


def _start(rows: Rows, call: Row) -> int:
    return min(offset(row) for row in _of_key(rows, call))


def _before_it(rows: Rows, second: Row) -> list[Row]:
    """The messages of the key in the incarnation's calls before."""
    return [
        row
        for row in calls(rows)
        if row.sharding_key == second.sharding_key
        and began_before(row, second)
        and not same_call(row, second)
        and same_incarnation(rows, row, second)
    ]


def _is_out_of_turn(rows: Rows, config: Config, first: Row, second: Row) -> bool:
    if first.sharding_key != second.sharding_key:
        return False
    start, last = _start(rows, second), _before_it(rows, second)[-1]
    owed = [row for row in _of_key(rows, first) if _is_owed(rows, config, row, second)]
    return (
        not before(first, second)
        or (same_call(last, first) and start < _start(rows, first))
        or any(start > offset(row) for row in owed)
    )


def _is_owed(rows: Rows, config: Config, message: Row, call: Row) -> bool:
    came_again = any(
        other.queue_offset == message.queue_offset and before(message, other)
        for other in _before_it(rows, call)
    )
    letters = [
        letter
        for letter in of(rows, Kind.DEAD_LETTER)
        if is_about(rows, letter, message) and before(message, letter) and before(letter, call)
    ]
    following = [
        other
        for other in [*_before_it(rows, call), call]
        if began_before(message, other) and not same_call(other, message)
    ]
    failed = any(
        letter.incarnation is not None and before(letter, following[0]) for letter in letters
    )
    limit, retries = config.max_reconsume_times, message.reconsume_times
    used_up = limit >= 0 and (retries is None or retries >= limit)
    return (
        asks_again(message)
        and not came_again
        and not any(letter.outcome is Outcome.OK for letter in letters)
        and (failed or not used_up)
    )


def _is_held_back(rows: Rows, config: Config, first: Row, second: Row) -> bool:
    late_us = second.started_us - first.started_us
    return (
        any(not _dropped_between(rows, add, second) for add in adds(rows, second)[-1:])
        and not moved_in_its_life(rows, second)
        and not _before_it(rows, second)
        and _start(rows, first) > _start(rows, second)
        and late_us > config.schedule_slack_ms * 1_000
    )
