"""LSE-6: the owner's unlock frees the lane at once, however young or old its lease is.

Decisions where the page leaves room:

- The owner is the client of the last certain grant that was answered before its unlock began.
- A grant since the unlock, be it the asker's own, shows that the lane was freed. A request that was not answered may
  hold the lane if it may have been applied after the unlock or, where it is of a third one, after the grant, and (but
  for the asker's own) if that is no longer ago than the limit. It may be applied until its answer or, without one,
  within the bound for delays, and as long after a fault of its link that held it back.
- Something stood in the way of a one-way unlock that went on, or was over for less than the bound, when it was sent, or
  began within the bound after that.
- An error code is no refusal: who asked so may hold the lane.
"""

from __future__ import annotations

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import Kind, Outcome
from tests.definitions.words import (
    Rows,
    before,
    began_before,
    broker_died,
    end_of,
    is_of_link,
    latest_us,
    of,
    same_lane,
    took_effect,
)

HOLD_NOTHING = ("cut", "lose", "drop_next", "duplicate")


def broken(rows: Rows, config: Config) -> bool:
    return any(
        _frees(rows, config, grant, unlock, refusal) and not _is_excused(rows, grant, refusal)
        for refusal in of(rows, Kind.LOCK)
        if refusal.outcome is Outcome.REFUSED and not refusal.code
        for unlock in took_effect(rows, Kind.UNLOCK)
        if same_lane(unlock, refusal) and _has_arrived(rows, config, unlock, refusal)
        for grant in _grants(rows, unlock)[-1:]
    )


def _grants(rows: Rows, unlock: Row) -> list[Row]:
    granted = [
        lock
        for lock in of(rows, Kind.LOCK)
        if lock.outcome is Outcome.OK and same_lane(lock, unlock) and before(lock, unlock)
    ]
    return sorted(granted, key=end_of)


def _frees(rows: Rows, config: Config, grant: Row, unlock: Row, refusal: Row) -> bool:
    return grant.client_id == unlock.client_id and not any(
        lock is not grant
        and (lock.outcome is not Outcome.REFUSED or lock.code)
        and same_lane(lock, refusal)
        and lock.seq_begin < end_of(refusal)
        and _may_hold(rows, config, lock, grant, unlock, refusal)
        for lock in of(rows, Kind.LOCK)
    )


def _may_hold(rows: Rows, config: Config, lock: Row, grant: Row, unlock: Row, refusal: Row) -> bool:
    """May it have been granted since, and not be over?"""
    lease_us = (config.broker_lease_ms + 1) * 1_000 - 1  # counted in ms
    if lock.outcome is Outcome.OK:  # however long ago, it shows that the unlock had freed the lane
        return not before(lock, unlock)
    held = [
        fault
        for fault in of(rows, Kind.FAULT)
        if (fault.detail or "").split(" ")[0] not in HOLD_NOTHING
        and is_of_link(fault, lock.client_id, lock.broker)
        and fault.started_us <= latest_us(config, lock)
        and not before(fault, lock)
    ]
    bound_us = config.delay_bound_ms * 1_000
    ends = [10**15 if fault.ended_us is None else fault.ended_us + bound_us for fault in held]
    latest = max([latest_us(config, lock), *ends])
    if lock.client_id == refusal.client_id:
        return latest >= unlock.started_us
    since = unlock if lock.client_id == unlock.client_id else grant
    return latest >= max(since.started_us, refusal.started_us - lease_us)


def _has_arrived(rows: Rows, config: Config, unlock: Row, refusal: Row) -> bool:
    if unlock.outcome is Outcome.OK:
        return before(unlock, refusal)
    bound_us = config.delay_bound_ms * 1_000
    return (
        unlock.outcome is Outcome.SENT
        and refusal.started_us - unlock.started_us > bound_us
        and not any(
            row.seq_begin < end_of(refusal) and _is_in_the_way(row, unlock, bound_us)
            for row in rows
        )
    )


def _is_in_the_way(row: Row, unlock: Row, bound_us: int) -> bool:
    if row.kind is Kind.CRASH:
        return row.client_id == unlock.client_id and began_before(unlock, row)
    concerned = (
        is_of_link(row, unlock.client_id, unlock.broker)
        if row.kind is Kind.FAULT
        else row.kind is Kind.PAUSE
        and (row.client_id == unlock.client_id or row.broker == unlock.broker)
    )
    return (
        concerned
        and row.started_us <= unlock.started_us + bound_us
        and (row.ended_us is None or row.ended_us + bound_us >= unlock.started_us)
    )


def _is_excused(rows: Rows, grant: Row, refusal: Row) -> bool:
    return broker_died(rows, grant.broker, grant.seq_begin, end_of(refusal)) or any(
        row.seq_begin < end_of(refusal)
        and (row.kind is Kind.CLOCK_STEP or (row.detail or "").startswith("duplicate"))
        for row in of(rows, Kind.CLOCK_STEP, Kind.FAULT)
    )
