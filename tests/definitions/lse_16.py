"""LSE-16: a client that drops a lane gives its lease back: nobody has to wait for the expiry.

Decisions where the page leaves room:

- The last owner is the client of the last certain grant that was answered before the refused request began.
- It has dropped the lane if a DROP of it, of whatever incarnation, follows that grant, and no ADD follows that.
- What it did before the grant's answer gives nothing back; who was refused the lane since has nothing to give back.
- What is to be over is every call, and every dead letter, of the owner on the lane that began before the refused
  request; the lease may have run out when, at the refusal's answer, the grant was asked for longer ago than the limit.
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
    calls,
    end_of,
    is_of_link,
    of,
    same_client,
    same_lane,
    took_effect,
)


def broken(rows: Rows, config: Config) -> bool:
    return any(
        grant.client_id != refusal.client_id
        and _is_kept(rows, config, grant, drop, refusal)
        and not _is_excused(rows, grant, drop, refusal)
        for refusal in of(rows, Kind.LOCK)
        if refusal.outcome is Outcome.REFUSED and not refusal.code
        for grant in _grants(rows, refusal)[-1:]
        for drop in [drop for drop in took_effect(rows, Kind.DROP) if _drops(drop, grant, refusal)][
            -1:
        ]
    )


def _grants(rows: Rows, refusal: Row) -> list[Row]:
    granted = [
        lock
        for lock in of(rows, Kind.LOCK)
        if lock.outcome is Outcome.OK
        and same_lane(lock, refusal)
        and end_of(lock) < end_of(refusal)
    ]
    return sorted(granted, key=end_of)


def _drops(drop: Row, grant: Row, refusal: Row) -> bool:
    return (
        same_client(drop, grant)
        and same_lane(drop, grant)
        and before(grant, drop)
        and before(drop, refusal)
    )


def _is_kept(rows: Rows, config: Config, grant: Row, drop: Row, refusal: Row) -> bool:
    """Is the owner long done with the lane, and has neither begun to give it back nor wants it again?"""
    ends = [
        row.ended_us
        for row in [*calls(rows), *of(rows, Kind.DEAD_LETTER)]
        if same_client(row, grant) and same_lane(row, grant) and began_before(row, refusal)
    ]
    if None in ends:
        return False
    done_us = max([drop.ended_us or 0, *(end or 0 for end in ends)])
    slack_us = config.schedule_slack_ms * 1_000
    wants_it = any(
        same_client(row, grant)
        and same_lane(row, grant)
        and began_before(grant if row.kind is Kind.UNLOCK else drop, row)
        and row.seq_begin < end_of(refusal)
        for row in [*took_effect(rows, Kind.UNLOCK, Kind.ADD, Kind.DROP), *of(rows, Kind.LOCK)]
    )
    lost_it = any(
        lock.outcome is Outcome.REFUSED
        and not lock.code
        and same_client(lock, grant)
        and same_lane(lock, grant)
        and end_of(grant) < end_of(lock) < end_of(refusal)
        for lock in of(rows, Kind.LOCK)
    )
    return (
        refusal.started_us - done_us > slack_us
        and (refusal.ended_us or 0) - grant.started_us <= config.broker_lease_ms * 1_000
        and not wants_it
        and not lost_it
        and not any(
            is_of_link(fault, grant.client_id, grant.broker)
            and fault.started_us <= done_us + slack_us
            and not before(fault, drop)
            for fault in of(rows, Kind.FAULT)
        )
    )


def _is_excused(rows: Rows, grant: Row, drop: Row, refusal: Row) -> bool:
    return broker_died(rows, grant.broker, grant.seq_begin, end_of(refusal)) or any(
        row.seq_begin < end_of(refusal)
        and (row.kind is Kind.CLOCK_STEP or row.client_id == grant.client_id)
        and (row.kind is not Kind.CRASH or began_before(grant, row))
        and (row.kind is not Kind.PAUSE or not before(row, drop))
        for row in of(rows, Kind.CLOCK_STEP, Kind.CRASH, Kind.PAUSE)
    )
