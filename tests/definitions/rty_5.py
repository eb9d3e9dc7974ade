"""RTY-5: with a limit of N retries, a message that never succeeds is delivered N + 1 times and then given up.

Decisions where the page leaves room:

- A message is given up by whoever begins to send its dead letter, whatever becomes of that one; the next one after one
  that failed is a further try.
- A dead letter failed that was begun before the message came again and was never acknowledged.
- Whoever began another call of the message meanwhile, however that ended but in a SUSPEND, null or a throw, may have
  finished it.
- A manual ROLLBACK excuses what comes after it in its incarnation, and so does what may have been one; a dead
  letter only one of its own message.
"""

from __future__ import annotations

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import LISTENER_SUSPENDS, Kind, Outcome
from tests.definitions.words import (
    Rows,
    before,
    began_before,
    calls,
    goes_on_beyond,
    is_about,
    letter_failed_between,
    may_have_rolled_back,
    of,
    replayed_before,
    same_call,
    same_incarnation,
    was_reset,
)


def broken(rows: Rows, config: Config) -> bool:
    limit = config.max_reconsume_times
    if limit < 0:
        return False
    return any(
        _came_again(rows, limit, message, call) for message in calls(rows) for call in calls(rows)
    ) or any(_given_up_early(rows, limit, letter) for letter in of(rows, Kind.DEAD_LETTER))


def _came_again(rows: Rows, limit: int, message: Row, call: Row) -> bool:
    """Does a message come again whose whole batch had used up its retries, and was not to be sent on?"""
    batch = [row for row in calls(rows) if same_call(row, message)]
    return (
        message.queue_offset == call.queue_offset
        and message.outcome in LISTENER_SUSPENDS
        and before(message, call)
        and same_incarnation(rows, message, call)
        and all(row.reconsume_times is not None and row.reconsume_times >= limit for row in batch)
        and not any(letter_failed_between(rows, row, call) for row in batch)
        and not any(
            other.queue_offset == message.queue_offset
            and began_before(message, other)
            and began_before(other, call)
            and same_incarnation(rows, other, message)
            and other.outcome not in LISTENER_SUSPENDS
            for other in calls(rows)
        )
        and not replayed_before(rows, call)
        and not was_reset(rows, message, call)
    )


def _given_up_early(rows: Rows, limit: int, letter: Row) -> bool:
    """Was the message given up though its last delivery left it another one?"""
    had = [
        call for call in calls(rows) if is_about(rows, letter, call) and began_before(call, letter)
    ]
    if letter.incarnation is None or not had:
        return False
    last = had[-1]
    return (
        last.reconsume_times is not None
        and last.reconsume_times < limit
        and not letter_failed_between(rows, last, letter)
        and not any(
            may_have_rolled_back(call)
            and same_incarnation(rows, call, letter)
            and (
                before(call, letter)
                if call.outcome is Outcome.ROLLBACK
                else call in had and not goes_on_beyond(rows, call, letter)
            )
            for call in calls(rows)
        )
        and not was_reset(rows, last, letter)
    )
