"""LSE-15: a client does not give a lane's lease back while its listener call of it runs.

Decisions where the page leaves room:

- Looked at is the call of the client on the lane, in the life of the unlock, that ends last; one without an end ends
  beyond all others.
- A cut call that is over counts against an unlock that names its incarnation.
- A shutdown is one of the client in that group, in whatever life. One that was over early excuses all the same, once
  the time has run out, if no call of the lane ran when it was over.
"""

from __future__ import annotations

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import Kind, Outcome
from tests.definitions.words import (
    Rows,
    before,
    began_before,
    calls,
    end_of,
    life,
    same_client,
    same_incarnation,
    same_lane,
    took_effect,
)


def broken(rows: Rows, config: Config) -> bool:
    return any(
        _is_too_soon(rows, unlock) and not _has_waited(rows, config, unlock)
        for unlock in took_effect(rows, Kind.UNLOCK)
    )


def _runs(rows: Rows, leave: Row, unlock: Row) -> bool:
    """Did a call of the client on the lane begin before that shutdown was over, and end after it?"""
    return any(
        same_client(call, unlock)
        and same_lane(call, unlock)
        and call.seq_begin < end_of(leave) < end_of(call)
        for call in calls(rows)
    )


def _is_too_soon(rows: Rows, unlock: Row) -> bool:
    began = [
        call
        for call in calls(rows)
        if same_client(call, unlock)
        and same_lane(call, unlock)
        and began_before(call, unlock)
        and life(rows, call) == life(rows, unlock)
    ]
    if not began:
        return False
    last = max(began, key=end_of)
    if last.outcome is Outcome.CUT and before(last, unlock):
        return same_incarnation(rows, last, unlock)
    return not before(last, unlock)


def _has_waited(rows: Rows, config: Config, unlock: Row) -> bool:
    least_us = (config.shutdown_wait_ms - 1) * 1_000
    return any(
        (leave.client_id, leave.group) == (unlock.client_id, unlock.group)
        and began_before(leave, unlock)
        and unlock.started_us - leave.started_us >= least_us
        and (
            leave.ended_us is None
            or leave.ended_us - leave.started_us >= least_us
            or not _runs(rows, leave, unlock)
        )
        for leave in took_effect(rows, Kind.LEAVE)
    )
