"""LSE-13: while a client works on a lane it asks for its lease again each lock interval.

Decisions where the page leaves room:

- The last request is the one that names the incarnation and began last, before what it does next; one without an end
  is under way, and nothing is owed. Where nobody saw a request or the ADD, nothing is.
- From a request that names no incarnation, or another one of the client's, on nothing is claimed until the next one
  that names this, or the next ADD.
- Who asked, or added the lane, in the midst of a departure is shutting down, whatever it does later.
- It is late when more than the time has passed.
- A crash excuses that came after the last request began; another hindrance if it was not over for longer than an
  answer may take when the last request began, and began before what the client does next.
"""

from __future__ import annotations

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import Kind
from tests.definitions.words import (
    Rows,
    adds,
    began_before,
    between,
    is_leaving,
    is_of_link,
    left_with,
    of,
    same_client,
    same_incarnation,
    same_lane,
    took_effect,
)

WORK = (Kind.LOCK, Kind.PULL, Kind.DELIVER, Kind.COMMIT)


def broken(rows: Rows, config: Config) -> bool:
    return any(
        _is_late(rows, config, work)
        for work in of(rows, *WORK)
        if work.incarnation is not None and _own_adds(rows, work)[-1:] == adds(rows, work)[-1:]
    )


def _own_adds(rows: Rows, work: Row) -> list[Row]:
    """Whatever its client has added of that lane, so far."""
    return [
        add
        for add in took_effect(rows, Kind.ADD)
        if same_client(add, work) and same_lane(add, work) and began_before(add, work)
    ]


def _is_late(rows: Rows, config: Config, work: Row) -> bool:
    asked = [
        lock
        for lock in of(rows, Kind.LOCK)
        if began_before(lock, work) and same_incarnation(rows, lock, work)
    ]
    since = [work, *adds(rows, work)[-1:], *asked][-1]
    if since.ended_us is None:
        return False
    lanes = {
        add.broker
        for add in took_effect(rows, Kind.ADD)
        if same_client(add, work) and began_before(add, work)
    }
    time_ms = (
        config.lock_interval_ms
        + config.schedule_slack_ms
        + config.delay_bound_ms * max(1, len(lanes))
    )
    return (
        work.started_us - since.ended_us > time_ms * 1_000
        and not _is_over(rows, since, work)
        and not any(_hinders(config, row, since, work) for row in rows)
        and not any(began_before(step, work) for step in of(rows, Kind.CLOCK_STEP))
    )


def _is_over(rows: Rows, since: Row, work: Row) -> bool:
    """Is it dropped (under whatever name), shutting down, or of a client whose requests name nothing?"""
    dropped = any(
        same_client(drop, work) and same_lane(drop, work) and between(since, drop, work)
        for drop in took_effect(rows, Kind.DROP)
    )
    nameless = any(
        not same_incarnation(rows, lock, work)
        and same_client(lock, work)
        and same_lane(lock, work)
        and between(since, lock, work)
        for lock in of(rows, Kind.LOCK)
    )
    return dropped or nameless or is_leaving(rows, work, work) or left_with(rows, since, work)


def _hinders(config: Config, row: Row, since: Row, work: Row) -> bool:
    if row.kind is Kind.FAULT:
        concerned = is_of_link(row, work.client_id, work.broker)
    else:
        concerned = row.kind in (Kind.CRASH, Kind.PAUSE) and (
            row.client_id == work.client_id or row.broker == work.broker
        )
    late_us = config.delay_bound_ms * 1_000
    if row.kind is Kind.CRASH:  # it is over at once, and a later request is answered
        return concerned and between(since, row, work)
    return (
        concerned
        and began_before(row, work)
        and (row.ended_us is None or row.ended_us + late_us >= since.started_us)
    )
