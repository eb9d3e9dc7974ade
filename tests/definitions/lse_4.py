"""LSE-4: a lane that is free, the asker's own or expired is granted when asked for; a broker begins with all free.

Decisions where the page leaves room:

- A request that was not refused may hold the lane if it may have been granted after the last certain grant was: until
  its answer or, where it has none, within the bound for delays; and if that is not longer ago than the limit.
- An unlock certainly arrived that was answered, or that was sent one way longer ago than the bound for delays.
- A request that ended in an error was not refused: it says nothing, and may hold the lane.
- A lease from before the lane's first request may have been asked for the bound for delays before it was granted.
- At the begin of the run somebody turns out to have been at work on the lane before who has it or gives it back at any
  time, and was not seen to join.
- A step of a clock, or a frame that came twice, silences the clause from then on; a step at any time what is said of
  the begin of the run.
"""

from __future__ import annotations

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import Kind, Outcome
from tests.definitions.words import (
    Rows,
    before,
    began_before,
    latest_us,
    may_be_applied_after,
    of,
    same_lane,
    took_effect,
)


def broken(rows: Rows, config: Config) -> bool:
    return any(
        _is_free(rows, config, refusal) and not _is_silenced(rows, refusal)
        for refusal in of(rows, Kind.LOCK)
        if refusal.outcome is Outcome.REFUSED and not refusal.code
    )


def _is_silenced(rows: Rows, refusal: Row) -> bool:
    return any(
        row.kind is Kind.CLOCK_STEP or (row.detail or "").startswith("duplicate ")
        for row in of(rows, Kind.CLOCK_STEP, Kind.FAULT)
        if row.seq_begin < (refusal.seq_end or refusal.seq_begin)
    )


def _is_free(rows: Rows, config: Config, refusal: Row) -> bool:
    crashes = [
        crash
        for crash in of(rows, Kind.CRASH)
        if crash.broker == refusal.broker
        and crash.seq_begin < (refusal.seq_end or refusal.seq_begin)
    ]
    if crashes:
        crash = crashes[-1]
        asked = any(
            may_be_applied_after(config, lock, crash) for lock in _others(rows, config, refusal)
        )
        if began_before(crash, refusal) and not asked:
            return True
    grants = [
        lock
        for lock in of(rows, Kind.LOCK)
        if lock.outcome is Outcome.OK
        and same_lane(lock, refusal)
        and before(lock, refusal)
        and not any(began_before(lock, crash) for crash in crashes)
    ]
    if not grants and not crashes:
        return _is_free_at_first(rows, config, refusal)
    return any(_frees(rows, config, grant, refusal) for grant in grants)


def _others(rows: Rows, config: Config, refusal: Row) -> list[Row]:
    """Requests of others that may have been granted before the refusal, and may still hold the lane."""
    return [
        lock
        for lock in of(rows, Kind.LOCK)
        if lock.client_id != refusal.client_id
        and (lock.outcome is not Outcome.REFUSED or lock.code)
        and same_lane(lock, refusal)
        and lock.seq_begin < (refusal.seq_end or refusal.seq_begin)
        and (refusal.started_us - latest_us(config, lock)) // 1_000 <= config.broker_lease_ms
    ]


def _frees(rows: Rows, config: Config, grant: Row, refusal: Row) -> bool:
    """Does the grant show that nobody could hold the lane against the asker?"""
    others = [lock for lock in _others(rows, config, refusal) if lock is not grant]
    age_ms = refusal.started_us // 1_000 - (grant.ended_us or 0) // 1_000
    is_over = grant.client_id == refusal.client_id or age_ms > config.broker_lease_ms
    if is_over and not any(may_be_applied_after(config, lock, grant) for lock in others):
        return True
    return any(
        unlock.client_id == grant.client_id
        and same_lane(unlock, grant)
        and before(grant, unlock)
        and _has_arrived(config, unlock, refusal)
        and not any(
            may_be_applied_after(config, lock, unlock if _same(lock, unlock) else grant)
            for lock in others
        )
        for unlock in took_effect(rows, Kind.UNLOCK)
    )


def _same(lock: Row, unlock: Row) -> bool:
    return lock.client_id == unlock.client_id


def _has_arrived(config: Config, unlock: Row, refusal: Row) -> bool:
    if unlock.outcome is Outcome.OK:
        return before(unlock, refusal)
    age_us = refusal.started_us - unlock.started_us
    return unlock.outcome is Outcome.SENT and age_us > config.delay_bound_ms * 1_000


def _is_free_at_first(rows: Rows, config: Config, refusal: Row) -> bool:
    """Is it the lane's begin: nobody else may have been granted it in the run, nor before?"""
    if _others(rows, config, refusal):
        return False
    stepped = bool(of(rows, Kind.CLOCK_STEP))
    requests = [lock for lock in of(rows, Kind.LOCK) if same_lane(lock, refusal)]
    waited_ms = refusal.started_us // 1_000 - requests[0].started_us // 1_000
    if waited_ms > config.broker_lease_ms + config.delay_bound_ms:
        return True
    at_work = any(
        same_lane(row, refusal) and not _had_joined(rows, row)
        for row in of(rows, Kind.UNLOCK, Kind.LOCK)
        if row.outcome is not Outcome.REFUSED or row.code
    )
    end = refusal._replace(seq_begin=refusal.seq_end or refusal.seq_begin)
    return _had_joined(rows, end) and not at_work and not stepped


def _had_joined(rows: Rows, row: Row) -> bool:
    return any(
        (join.client_id, join.group) == (row.client_id, row.group) and began_before(join, row)
        for join in took_effect(rows, Kind.JOIN)
    )
