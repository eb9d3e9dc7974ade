"""RTY-1: an incarnation does not redeliver a suspended message before its suspend time has passed.

Decisions where the page leaves room:

- The time counts from the end of the message's last call before the redelivery.
- A call of which nobody knows how it ended may end at any time after its begin, also where it began before.
- A dead letter that was not refused may have given the message up, from when it was begun.
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
    between,
    calls,
    is_about,
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
    earlier = [
        other
        for other in calls(rows)
        if other.queue_offset == call.queue_offset
        and began_before(other, call)
        and same_incarnation(rows, other, call)
    ]
    if not earlier or not asks_again(earlier[-1]) or not before(earlier[-1], call):
        return False
    last = earlier[-1]
    if last.outcome not in results:
        return False
    asked_ms = config.suspend_ms if last.suspend_ms is None else last.suspend_ms
    waited_us = call.started_us - (last.ended_us or 0)
    early = waited_us <= (min(max(asked_ms, LEAST_MS), MOST_MS) - 1) * 1_000
    return (
        early
        and not was_reset(rows, last, call)
        and not _given_up(rows, last, call)
        and not _given_up_unseen(rows, config, last, call)
    )


def _given_up(rows: Rows, last: Row, call: Row) -> bool:
    return any(
        letter.outcome is not Outcome.REFUSED
        and is_about(rows, letter, last)
        and between(last, letter, call)
        for letter in of(rows, Kind.DEAD_LETTER)
    )


def _given_up_unseen(rows: Rows, config: Config, last: Row, call: Row) -> bool:
    """Had it used up its retries, and may a ROLLBACK have put it back?"""
    limit = config.max_reconsume_times
    used_up = limit >= 0 and (last.reconsume_times is None or last.reconsume_times >= limit)
    return used_up and any(
        may_have_rolled_back(other)
        and same_incarnation(rows, other, call)
        and began_before(other, call)
        and (other.outcome is Outcome.UNKNOWN or began_before(last, other))
        for other in calls(rows)
    )
