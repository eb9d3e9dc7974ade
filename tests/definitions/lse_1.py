"""LSE-1: no two clients hold the lease of one lane at the same time.

Decisions where the page leaves room:

- Of two grants that overlap either may be the earlier one: both orders have to break the promise.
- An unlock may be applied from its begin to its answer, or within the bound for delays where it has none.
- A clock that was stepped at any time before the later answer, or a crash of the broker since the first request
  began, excuses.
"""

from __future__ import annotations

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import Kind, Outcome
from tests.definitions.words import (
    Rows,
    before,
    may_be_applied_between,
    of,
    same_lane,
    took_effect,
)


def broken(rows: Rows, config: Config) -> bool:
    return any(
        first.client_id != second.client_id
        and same_lane(first, second)
        and _within_the_limit(config, first, second)
        and not _is_excused(rows, first, second)
        and (before(second, first) or not _given_back(rows, config, first, second))
        and (before(first, second) or not _given_back(rows, config, second, first))
        for first in _grants(rows)
        for second in _grants(rows)
    )


def _grants(rows: Rows) -> list[Row]:
    return [
        lock
        for lock in of(rows, Kind.LOCK)
        if lock.outcome is Outcome.OK and lock.ended_us is not None
    ]


def _within_the_limit(config: Config, first: Row, second: Row) -> bool:
    last_us = max(first.ended_us or 0, second.ended_us or 0)
    return last_us - min(first.started_us, second.started_us) <= config.broker_lease_ms * 1_000


def _given_back(rows: Rows, config: Config, first: Row, second: Row) -> bool:
    return any(
        unlock.client_id == first.client_id
        and same_lane(unlock, first)
        and may_be_applied_between(config, unlock, first, second)
        for unlock in took_effect(rows, Kind.UNLOCK)
    )


def _is_excused(rows: Rows, first: Row, second: Row) -> bool:
    begin = min(first.seq_begin, second.seq_begin)
    end = max(first.seq_end or 0, second.seq_end or 0)
    return any(step.seq_begin < end for step in of(rows, Kind.CLOCK_STEP)) or any(
        crash.broker == first.broker and begin < crash.seq_begin < end
        for crash in of(rows, Kind.CRASH)
    )
