"""PML-2: a message that was handed out is not handed out again before its lease has ended, nor before the pause is over
that its release asked for.

Decisions where the page leaves room:

- Of two hand-outs that overlap either may be the earlier one: both orders have to break the promise.
- An acknowledgement or a release that was refused ended nothing.
- A renewal that began after the hand-out did says until when the lease lasts where it was answered after the hand-out
  and before the later one; the hand-out, and renewals that had certainly been applied before it, then say nothing. Of
  all that may be the last one, the shortest counts. Where the lease may have run out by then, what was asked for before
  may have been handed out meanwhile: such a renewal prolongs nothing for it. One that tells no end prolongs nothing
  beyond its own begin.
- The connection counts as lost from a death, a departure, a pause or a fault between both hand-outs.
- Whoever put the message back had it where an earlier hand-out to the same client names the lease that the release
  names, and that lives on until it was answered. A release that names no place may be of another message.
- Which hand-out is the first one after the release their answers say; one that was asked for before the release was
  answered, and came after it began, may be that.
"""

from __future__ import annotations

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import Kind, Outcome
from tests.definitions.words import (
    Rows,
    before,
    end_of,
    may_be_applied_after,
    may_be_applied_between,
    of,
    same_lane,
    took_effect,
    was_moved_before,
)

MARGIN_US = 1_000


def broken(rows: Rows, config: Config) -> bool:
    return any(handed_out_twice(rows, config, *pair) for pair in pairs(rows)) or any(
        _comes_too_early(rows, config, first, release, second)
        for first, second in pairs(rows)
        for release in of(rows, Kind.RELEASE)
    )


def _comes_too_early(rows: Rows, config: Config, first: Row, release: Row, second: Row) -> bool:
    """Did the holder put the message back for some time, and was it certainly handed out again within that?"""
    over_us = release.started_us + (release.suspend_ms or 0) * 1_000
    return (
        release.outcome is Outcome.OK
        and before(release, second)
        and not _another_came_first(rows, release, second)
        and (second.ended_us or 0) + MARGIN_US < over_us
        and _had_it(rows, config, first, release)
        and not _may_have_ended_the_pause(rows, config, release, second)
        and not _is_excused(rows, first, second)
        and not was_moved_before(rows, second)
    )


def _had_it(rows: Rows, config: Config, first: Row, release: Row) -> bool:
    """Is it the lease of that hand-out that was given back, and did it certainly live until that was answered?"""
    others = [row for row in rows if row is not release]
    return (
        before(first, release)
        and same_lane(first, release)
        and first.queue_offset == release.queue_offset
        and first.lease_id is not None
        and (first.client_id, first.lease_id) == (release.client_id, release.lease_id)
        and lives_on(others, config, first, release)
    )


def _another_came_first(rows: Rows, release: Row, second: Row) -> bool:
    """Did the message come sooner to one who had asked before the release was answered, and maybe after that one?"""
    return any(
        row.outcome is Outcome.OK
        and _is_about(row, release)
        and not before(row, release)
        and row.seq_begin < end_of(release)
        and before_end(row, second)
        for row in of(rows, Kind.RECEIVE)
    )


def _may_have_ended_the_pause(rows: Rows, config: Config, release: Row, second: Row) -> bool:
    return any(
        row is not release
        and _is_about(row, second)
        and may_be_applied_between(config, row, release, second)
        for row in took_effect(rows, Kind.RENEW, Kind.ACK, Kind.RELEASE)
    )


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
    renewals = [
        row
        for row in took_effect(rows, Kind.RENEW)
        if _is_about(row, first)
        and row.seq_begin > first.seq_begin
        and may_be_applied_between(config, row, first, second)
    ]
    certain = [
        row
        for row in renewals
        if row.outcome is Outcome.OK
        and None not in (row.queue_offset, row.lease_until_us)
        and before_end(row, second)
        and before_end(first, row)
        and (before(row, second) or _was_in_time(rows, config, first, row, second))
    ]
    ends = [
        row.started_us if row.lease_until_us is None else row.lease_until_us
        for row in renewals
        if not any(not may_be_applied_after(config, row, later) for later in certain)
    ]
    if not certain:
        ends.append(first.lease_until_us)
    return min((end for end in ends if end is not None), default=None)


def _was_in_time(rows: Rows, config: Config, first: Row, renewal: Row, second: Row) -> bool:
    """Was the renewal answered before the lease, as it was until then, may have run out?"""
    earlier = [row for row in rows if row.seq_begin < renewal.seq_begin]
    until_us = _until_us(earlier, config, first, second)
    return until_us is None or (renewal.ended_us or 0) + MARGIN_US < until_us


def before_end(first: Row, second: Row) -> bool:
    """Had the first ended when the second did?"""
    return end_of(first) < end_of(second)


def _was_ended(rows: Rows, config: Config, first: Row, second: Row) -> bool:
    return any(
        _is_about(row, first)
        and (
            may_be_applied_between(config, row, first, second)
            or first.seq_begin < row.seq_begin < end_of(first)
        )
        for row in took_effect(rows, Kind.ACK, Kind.RELEASE)
    )


def _is_about(row: Row, first: Row) -> bool:
    """Does it name the message by its place; or no place, and may be of every message of the lane?

    A renewal that names neither place, id nor lease is of the lane's own lease.
    """
    names = (row.queue_offset, row.message_id, row.lease_id)
    of_lane = row.kind is Kind.RENEW and names == (None, None, None)
    return same_lane(row, first) and not of_lane and row.queue_offset in (None, first.queue_offset)


def _is_excused(rows: Rows, first: Row, second: Row) -> bool:
    end = max(end_of(first), end_of(second))
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
