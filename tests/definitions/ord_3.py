"""ORD-3: while a call runs or its batch is suspended, no other call of that incarnation starts beyond that batch.

Decisions where the page leaves room:

- An incarnation has one running call at a time: a second one breaks the promise at whatever offset it starts.
- A call is beyond what is owed of a batch when it starts above every message of it that is owed.
- "Failed" is a dead letter that ended without being acknowledged, also where no answer came, and names the incarnation.
- "The next call" is the one after the call of the message, wherever it starts.
- A batch that was put back by a manual ROLLBACK is owed until the next call, whatever is given up of it.
"""

from __future__ import annotations

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import Kind, Outcome
from tests.definitions.words import (
    Rows,
    asks_again,
    before,
    began_before,
    calls,
    end_of,
    is_about,
    is_used_up,
    of,
    offset,
    rolled_back,
    same_call,
    same_incarnation,
    was_reset,
)


def broken(rows: Rows, config: Config) -> bool:
    return any(
        began_before(first, second)
        and not same_call(first, second)
        and same_incarnation(rows, first, second)
        and not was_reset(rows, first, second)
        and (not before(first, second) or _overtaken(rows, config, first, second))
        for first in calls(rows)
        for second in calls(rows)
    )


def _overtaken(rows: Rows, config: Config, first: Row, call: Row) -> bool:
    """Does the call start beyond all that the first one's batch still owes?"""
    batch = [row for row in calls(rows) if same_call(row, first) and asks_again(row)]
    owed = [row for row in batch if is_owed(rows, config, row, call)]
    start = min(offset(row) for row in calls(rows) if same_call(row, call))
    return bool(owed) and all(start > offset(row) for row in owed)


def is_owed(rows: Rows, config: Config, message: Row, call: Row) -> bool:
    """Had it neither come again nor been given up when the call began?"""
    if any(
        other.queue_offset == message.queue_offset
        and same_incarnation(rows, other, message)
        and before(message, other)
        and began_before(other, call)
        and not same_call(other, call)
        for other in calls(rows)
    ):
        return False
    tries = _given_up(rows, message, call)
    if any(each.outcome is Outcome.OK for each in tries):
        return False
    if rolled_back(message):
        return True
    return not is_used_up(config, message) or any(
        each.incarnation is not None and before(each, _next_call(rows, message)) for each in tries
    )


def _next_call(rows: Rows, message: Row) -> Row:
    later = [
        row
        for row in calls(rows)
        if same_incarnation(rows, row, message)
        and began_before(message, row)
        and not same_call(row, message)
    ]
    return min(later, key=lambda row: row.seq_begin)


def _given_up(rows: Rows, message: Row, call: Row) -> list[Row]:
    """The dead letters of the message that ended before the other call and after its own one; of a batch that a
    ROLLBACK put back, after the next call had begun. Only one that began after its own call can have failed."""
    since = _next_call(rows, message).seq_begin if rolled_back(message) else end_of(message)
    return [
        letter
        for letter in of(rows, Kind.DEAD_LETTER)
        if is_about(rows, letter, message)
        and since < end_of(letter)
        and before(letter, call)
        and (letter.outcome is Outcome.OK or before(message, letter))
    ]
