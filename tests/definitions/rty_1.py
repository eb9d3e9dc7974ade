"""RTY-1: an incarnation does not redeliver a suspended message before its suspend time has passed.

Decisions where the page leaves room:

- The time counts from the end of each call of the message after which it had not come again.
- A call of which nobody knows how it ended may end at any time after its begin, also where it began before.
- A dead letter that was not refused, and was begun after the call had ended, may have given the message up.
"""

from __future__ import annotations

from collections.abc import Collection

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import LISTENER_RESULTS, Kind, Outcome
from tests.definitions.words import (
    Rows,
    asks_again,
    before,
    began_before,
    calls,
    end_of,
    is_about,
    is_used_up,
    may_have_rolled_back,
    of,
    same_incarnation,
    was_reset,
)

LEAST_MS, MOST_MS = 10, 30_000


def broken(rows: Rows, config: Config) -> bool:
    return any(came_early(rows, config, call) for call in calls(rows))


def came_early(
    rows: Rows, config: Config, call: Row, results: Collection[Outcome] = LISTENER_RESULTS
) -> bool:
    """Does a message come again too early whose last call ended with one of these results?"""
    return any(
        last.outcome in results
        and asks_again(last)
        and _is_early(config, last, call)
        and not _is_a_later_matter(rows, last, call)
        and not was_reset(rows, last, call)
        and not _given_up(rows, last, call)
        and not _given_up_unseen(rows, config, last, call)
        for last in calls(rows)
        if last.queue_offset == call.queue_offset
        and before(last, call)
        and same_incarnation(rows, last, call)
    )


def _is_early(config: Config, last: Row, call: Row) -> bool:
    asked_ms = config.suspend_ms if last.suspend_ms is None else last.suspend_ms
    waited_us = call.started_us - (last.ended_us or 0)
    return waited_us <= (min(max(asked_ms, LEAST_MS), MOST_MS) - 1) * 1_000


def _is_a_later_matter(rows: Rows, last: Row, call: Row) -> bool:
    """Did the message come again after that call had ended, and before this one began?"""
    return any(
        other.queue_offset == call.queue_offset
        and before(last, other)
        and began_before(other, call)
        and same_incarnation(rows, other, call)
        for other in calls(rows)
    )


def _given_up(rows: Rows, last: Row, call: Row) -> bool:
    return any(
        letter.outcome is not Outcome.REFUSED
        and is_about(rows, letter, last)
        and before(last, letter)
        and began_before(letter, call)
        for letter in of(rows, Kind.DEAD_LETTER)
    )


def _given_up_unseen(rows: Rows, config: Config, last: Row, call: Row) -> bool:
    """Had it used up its retries, and may a ROLLBACK have put it back?"""
    return is_used_up(config, last) and any(
        may_have_rolled_back(other)
        and same_incarnation(rows, other, call)
        and began_before(other, call)
        and (
            other.outcome is Outcome.UNKNOWN
            or (end_of(last) < end_of(other) and before(other, call))
        )
        for other in calls(rows)
    )
