"""LSE-2: no two processors of one lane at the same time before the first one's lease has run out.

Decisions where the page leaves room:

- The lease rests on the client's grant that was answered last before the second call began.
- An unlock ends the lease if it began before the call did and may have arrived after the grant was asked for: until its
  answer or, where it was sent one way, within the bound for delays.
- A client that has come again (JOIN, ADD) before its call began is not shutting down.
- A client that stands still when the second call begins counts as one that goes on just then.
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
    died_between,
    is_leaving,
    of,
    same_call,
    same_lane,
    took_effect,
)


def broken(rows: Rows, config: Config) -> bool:
    return any(
        began_before(first, second)
        and not before(first, second)
        and not same_call(first, second)
        and same_lane(first, second)
        and _are_two(first, second)
        and _lease_lives(rows, config, first, second)
        and not _is_excused(rows, config, first, second)
        for first in calls(rows)
        for second in calls(rows)
    )


def _are_two(first: Row, second: Row) -> bool:
    """Two clients; or two processes of one client id, where both are told and both calls have ended."""
    if first.client_id != second.client_id:
        return True
    known = first.process is not None and second.process is not None
    ended = first.seq_end is not None and second.seq_end is not None
    return known and ended and first.process != second.process


def _last_grant(rows: Rows, call: Row, until: Row) -> Row | None:
    """The client's last request for the lane that was granted, for certain, before the other row began."""
    granted = [
        lock
        for lock in of(rows, Kind.LOCK)
        if lock.outcome is Outcome.OK
        and lock.client_id == call.client_id
        and same_lane(lock, call)
        and before(lock, until)
    ]
    return max(granted, key=lambda lock: lock.seq_end or 0, default=None)


def _lease_lives(rows: Rows, config: Config, first: Row, second: Row) -> bool:
    grant = _last_grant(rows, first, second)
    if grant is None:
        return False
    age_us = second.started_us - grant.started_us
    given_back = any(
        unlock.client_id == first.client_id
        and same_lane(unlock, first)
        and began_before(unlock, first)
        and _may_follow(unlock, grant, config)
        for unlock in took_effect(rows, Kind.UNLOCK)
    )
    return age_us <= config.broker_lease_ms * 1_000 and not given_back


def _may_follow(unlock: Row, grant: Row, config: Config) -> bool:
    """May the unlock have reached the broker after the grant was asked for?"""
    if unlock.outcome is Outcome.OK:
        return not before(unlock, grant)
    return unlock.started_us + config.delay_bound_ms * 1_000 >= grant.started_us


def _is_excused(rows: Rows, config: Config, first: Row, second: Row) -> bool:
    grants = [_last_grant(rows, call, second) for call in (first, second)]
    stepped = any(began_before(step, second) for step in of(rows, Kind.CLOCK_STEP))
    forgotten = any(
        crash.broker == first.broker and between(grant, crash, second)
        for crash in of(rows, Kind.CRASH)
        for grant in grants
        if grant is not None
    )
    ends = died_between(rows, first, second) or is_leaving(rows, first, second)
    ends = ends or _may_be_cut(rows, config, grants[0], second)
    return (
        stepped
        or forgotten
        or ends
        or _answered_too_late(config, grants[1], second)
        or _just_went_on(rows, config, second)
    )


def _may_be_cut(rows: Rows, config: Config, grant: Row | None, second: Row) -> bool:
    """May the lease have ended with its owner's connection, in another system than RocketMQ?"""
    return config.system != "rocketmq" and any(
        began_before(fault, second) and grant is not None and not before(fault, grant)
        for fault in of(rows, Kind.FAULT)
    )


def _answered_too_late(config: Config, grant: Row | None, call: Row) -> bool:
    """Is the grant over at the broker, and was fresh to the client when it looked?"""
    if grant is None or grant.ended_us is None:
        return False
    over = call.started_us - grant.started_us > config.broker_lease_ms * 1_000
    looked_us = call.started_us - config.guard_slack_ms * 1_000
    return over and looked_us - grant.ended_us <= config.client_lease_ms * 1_000


def _just_went_on(rows: Rows, config: Config, call: Row) -> bool:
    slack_us = config.guard_slack_ms * 1_000
    return slack_us > 0 and any(
        pause.client_id == call.client_id
        and began_before(pause, call)
        and (pause.ended_us is None or call.started_us - pause.ended_us <= slack_us)
        for pause in of(rows, Kind.PAUSE)
    )
