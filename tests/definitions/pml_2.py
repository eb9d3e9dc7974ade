"""PML-2: a message that was handed out is not handed out again before its lease has ended.

Decisions where the page leaves room:

- Of two hand-outs that overlap either may be the earlier one: both orders have to break the promise.
- An acknowledgement or a release that was refused ended nothing.
- A renewal that began after the hand-out did shortens the lease where it may have been applied; it prolongs the lease
  where it was answered after the hand-out and before the later one.
- The connection counts as lost from a death, a departure, a pause or a fault between both hand-outs.
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
    was_moved_before,
)

MARGIN_US = 1_000


def broken(rows: Rows, config: Config) -> bool:
    return any(handed_out_twice(rows, config, *pair) for pair in pairs(rows))


def pairs(rows: Rows) -> list[tuple[Row, Row]]:
    """Two hand-outs of one message, in the order of their begins."""
    handed = [row for row in of(rows, Kind.RECEIVE) if row.outcome is Outcome.OK]
    return [
        (first, second)
        for first in handed
        for second in handed
        if first.seq_begin < second.seq_begin
        and same_lane(first, second)
        and first.queue_offset == second.queue_offset
    ]


def handed_out_twice(rows: Rows, config: Config, first: Row, second: Row) -> bool:
    """Did the later hand-out certainly come while the other lease lived, whichever the later one was?"""
    if was_moved_before(rows, first) or was_moved_before(rows, second):
        return False
    return lives_on(rows, config, first, second) and (
        before(first, second) or lives_on(rows, config, second, first)
    )


def lives_on(rows: Rows, config: Config, first: Row, second: Row) -> bool:
    """Does the first one's lease certainly live when the second one is handed out?"""
    until_us = _until_us(rows, config, first, second)
    lives = until_us is None or (second.ended_us or 0) + MARGIN_US < until_us
    return (
        lives
        and not _was_ended(rows, config, first, second)
        and not _is_excused(rows, first, second)
    )


def _until_us(rows: Rows, config: Config, first: Row, second: Row) -> int | None:
    """Until when the lease lasts at least; None: without an end in time."""
    until_us = first.lease_until_us
    for renewal in took_effect(rows, Kind.RENEW):
        end_us = renewal.lease_until_us
        if (
            end_us is None
            or not _is_about(renewal, first)
            or renewal.seq_begin < first.seq_begin
            or not may_be_applied_between(config, renewal, first, second)
        ):
            continue
        shorter = until_us is None or end_us < until_us
        answered = renewal.outcome is Outcome.OK and (renewal.seq_end or 0) < (second.seq_end or 0)
        certain = answered and (first.seq_end or 0) < (renewal.seq_end or 0)
        if shorter or certain:
            until_us = end_us
    return until_us


def _was_ended(rows: Rows, config: Config, first: Row, second: Row) -> bool:
    return any(
        _is_about(row, first) and may_be_applied_between(config, row, first, second)
        for row in took_effect(rows, Kind.ACK, Kind.RELEASE)
    )


def _is_about(row: Row, first: Row) -> bool:
    """Does it name the message by its place; or by an id alone, which may be of every message of the lane?"""
    return same_lane(row, first) and row.queue_offset in (None, first.queue_offset)


def _is_excused(rows: Rows, first: Row, second: Row) -> bool:
    end = second.seq_end or second.seq_begin
    return any(
        row.seq_begin < end
        and (row.kind is Kind.CLOCK_STEP or row.seq_end is None or row.seq_end > first.seq_begin)
        and (
            row.kind in (Kind.CLOCK_STEP, Kind.FAULT)
            or (row.kind is Kind.CRASH and row.broker == first.broker)
            or row.client_id == first.client_id
        )
        for row in of(rows, Kind.CLOCK_STEP, Kind.CRASH, Kind.FAULT, Kind.LEAVE, Kind.PAUSE)
    )
