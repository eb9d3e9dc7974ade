"""RTY-4: after a suspended batch the next call starts at its lowest offset, and nothing of it is left behind.

Decisions where the page leaves room:

- The next call is the first one of the incarnation that begins after the batch's call has ended; a later one is one
  that begins after that.
- Of calls that overlap only the one that began last says where the next one has to start.
- Given up is a message whose dead letter was acknowledged after the batch's call had ended, and before the call in
  question began.
- A message whose retries were used up is owed if its dead letter failed before the next call.
- A dead letter that names no incarnation gives a message of its client up, and tells of none that it was not.
- Where all of the batch was given up, or may have been, nothing is claimed.
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
    end_of,
    is_about,
    of,
    offset,
    same_call,
    same_incarnation,
    was_reset,
)


def broken(rows: Rows, config: Config) -> bool:
    return any(
        _started_elsewhere(rows, config, call) or _left_behind(rows, config, call)
        for call in calls(rows)
        if call.outcome in LISTENER_SUSPENDS
    )


def _later(rows: Rows, suspended: Row) -> list[Row]:
    return [
        call
        for call in calls(rows)
        if before(suspended, call)
        and same_incarnation(rows, suspended, call)
        and not was_reset(rows, suspended, call)
    ]


def _started_elsewhere(rows: Rows, config: Config, suspended: Row) -> bool:
    later = _later(rows, suspended)
    if not later or any(
        same_incarnation(rows, other, suspended)
        and began_before(suspended, other)
        and began_before(other, later[0])
        and not same_call(other, suspended)
        for other in calls(rows)
    ):
        return False
    start = min(offset(call) for call in later if same_call(call, later[0]))
    batch = [call for call in calls(rows) if same_call(call, suspended)]
    lowest = min(offset(message) for message in batch)
    others = [offset(each) for each in batch if _is_owed(rows, config, each, later[0])]
    return bool(others) and not lowest <= start <= min(others)


def _left_behind(rows: Rows, config: Config, message: Row) -> bool:
    return any(
        offset(call) > offset(message)
        and _is_owed(rows, config, message, call)
        and not any(
            other.queue_offset == message.queue_offset
            and (began_before(other, call) or same_call(other, call))
            for other in _later(rows, message)
        )
        for call in _later(rows, message)
    )


def _is_owed(rows: Rows, config: Config, message: Row, call: Row) -> bool:
    """Was it not given up when the call began, as far as anybody can tell?"""
    letters = [
        letter
        for letter in of(rows, Kind.DEAD_LETTER)
        if is_about(rows, letter, message)
        and end_of(message) < end_of(letter)
        and began_before(letter, call)
    ]
    if any(letter.outcome is Outcome.OK and before(letter, call) for letter in letters):
        return False
    limit, retries = config.max_reconsume_times, message.reconsume_times
    used_up = limit >= 0 and (retries is None or retries >= limit)
    following = _later(rows, message)[0]
    return not used_up or any(
        letter.incarnation is not None and before(message, letter) and before(letter, following)
        for letter in letters
    )
