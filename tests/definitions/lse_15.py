"""LSE-15: a client does not give a lane's lease back while its listener call of it runs.

Decisions where the page leaves room:

- Looked at is the call of the client on the lane, in the life of the unlock, that ends last; one without an end ends
  beyond all others, and of several of those the last one.
- A cut call that is over counts against an unlock that names its incarnation.
- A shutdown is one of the client in that group from which it has not come back (JOIN, ADD). One that was over early
  excuses all the same, once the time has run out, if that call did not run when it was over.
"""

from __future__ import annotations

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import Kind, Outcome
from tests.definitions.words import (
    Rows,
    before,
    began_before,
    between,
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
        _is_too_soon(call, unlock, rows) and not _has_waited(rows, config, call, unlock)
        for unlock in took_effect(rows, Kind.UNLOCK)
        for call in _last_call(rows, unlock)
    )


def _last_call(rows: Rows, unlock: Row) -> list[Row]:
    """The call that ends last, if there is any."""
    began = [
        call
        for call in calls(rows)
        if same_client(call, unlock)
        and same_lane(call, unlock)
        and began_before(call, unlock)
        and life(rows, call) == life(rows, unlock)
    ]
    return [max(reversed(began), key=end_of)] if began else []


def _is_too_soon(call: Row, unlock: Row, rows: Rows) -> bool:
    if call.outcome is Outcome.CUT and before(call, unlock):
        return same_incarnation(rows, call, unlock)
    return not before(call, unlock)


def _has_waited(rows: Rows, config: Config, call: Row, unlock: Row) -> bool:
    least_us = (config.shutdown_wait_ms - 1) * 1_000
    return any(
        unlock.started_us - leave.started_us >= least_us
        and (
            leave.ended_us is None
            or leave.ended_us - leave.started_us >= least_us
            or not call.seq_begin < end_of(leave) < end_of(call)
        )
        for leave in _shutdowns(rows, unlock)
    )


def _shutdowns(rows: Rows, unlock: Row) -> list[Row]:
    return [
        leave
        for leave in took_effect(rows, Kind.LEAVE)
        if (leave.client_id, leave.group) == (unlock.client_id, unlock.group)
        and began_before(leave, unlock)
        and not any(
            (back.client_id, back.group) == (unlock.client_id, unlock.group)
            and between(leave, back, unlock)
            for back in took_effect(rows, Kind.JOIN, Kind.ADD)
        )
    ]
