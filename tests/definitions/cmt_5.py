"""CMT-5: no client commits on a lane after another client's grant, unless its lease ended by expiry or a restart.

Decisions where the page leaves room:

- A client gives its last grant back, by its first unlock after it.
- The client was granted the lane again if a request of it was that was answered after the unlock began, and
  before the commit did.
- The other's grant counts if it was asked for after the client's grant, and answered after the unlock began and before
  the commit did.
- A next life begins with a crash, or with the return after a departure; a JOIN alone is no sign of one.
- A life ends with a crash since the grant, or a departure that was not over before it. A commit without an incarnation
  is of nobody knows which.
- What the history tells of a next life holds also where unlock and commit name one incarnation: numbers begin anew.
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
    of,
    same_lane,
    took_effect,
)


def broken(rows: Rows, config: Config) -> bool:
    return any(
        _is_about(grant, unlock)
        and _is_about(unlock, commit)
        and before(grant, unlock)
        and _is_first_after(rows, grant, unlock)
        and began_before(unlock, commit)
        and _went_to_another(rows, config, grant, unlock, commit)
        and not _asked_again(rows, unlock, commit)
        and not _is_excused(rows, grant, unlock, commit)
        for grant in of(rows, Kind.LOCK)
        if grant.outcome is Outcome.OK
        for unlock in took_effect(rows, Kind.UNLOCK)
        for commit in took_effect(rows, Kind.COMMIT)
        if commit.incarnation is not None
    )


def _is_about(first: Row, second: Row) -> bool:
    return first.client_id == second.client_id and same_lane(first, second)


def _is_first_after(rows: Rows, grant: Row, unlock: Row) -> bool:
    """Was the client neither granted the lane again before the unlock, nor had it given it back?"""
    return not any(
        _is_about(row, unlock) and between(grant, row, unlock)
        for row in took_effect(rows, Kind.UNLOCK, Kind.LOCK)
        if row.kind is Kind.UNLOCK or row.outcome is Outcome.OK
    )


def _went_to_another(rows: Rows, config: Config, grant: Row, unlock: Row, commit: Row) -> bool:
    """Was somebody else granted the lane while the first grant would certainly still have lived?"""
    return any(
        other.outcome is Outcome.OK
        and other.client_id != grant.client_id
        and same_lane(other, grant)
        and before(grant, other)
        and not before(other, unlock)
        and before(other, commit)
        and (other.ended_us or 0) - grant.started_us <= config.broker_lease_ms * 1_000
        for other in of(rows, Kind.LOCK)
    )


def _asked_again(rows: Rows, unlock: Row, commit: Row) -> bool:
    return any(
        lock.outcome is Outcome.OK
        and _is_about(lock, commit)
        and not before(lock, unlock)
        and before(lock, commit)
        for lock in of(rows, Kind.LOCK)
    )


def _is_excused(rows: Rows, grant: Row, unlock: Row, commit: Row) -> bool:
    stepped = any(began_before(step, commit) for step in of(rows, Kind.CLOCK_STEP))
    forgotten = any(
        crash.broker == grant.broker and between(grant, crash, commit)
        for crash in of(rows, Kind.CRASH)
    )
    died = any(
        crash.client_id == commit.client_id and between(grant, crash, commit)
        for crash in of(rows, Kind.CRASH)
    )
    left = any(
        (leave.client_id, leave.group) == (commit.client_id, commit.group)
        and not before(leave, grant)
        and any(
            (back.client_id, back.group) == (commit.client_id, commit.group)
            and leave.seq_begin < back.seq_begin <= commit.seq_begin
            for back in took_effect(rows, Kind.JOIN, Kind.ADD)
        )
        for leave in took_effect(rows, Kind.LEAVE)
    )
    return stepped or forgotten or died or left
