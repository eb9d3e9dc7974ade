"""CMT-7: what was committed longer than one persist interval before a broker's crash is still stored after it.

Decisions where the page leaves room:

- It was so long ago when more than that lies between the commit's answer and the first crash after it.
- The first write was over when an answered request about the lane, with no crash since, ended longer before the commit
  began than a first write takes, with the slack.
- The answer has to be the value of such a commit, or of one that was not refused, may have been applied after it and
  began before the answer came: within the bound for delays, also where it was answered sooner; or within that of the
  end of a pause of the broker which had begun by then.
- A reset is a commit here.
- A commit that was not over when a reset began, or began later, is not certainly stored; while a reset is under way
  nothing is claimed.
"""

from __future__ import annotations

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import Kind, Outcome
from tests.definitions.words import (
    Rows,
    before,
    broker_died,
    end_of,
    filled_a_disk,
    may_be_applied_after,
    of,
    same_lane,
    same_queue,
    took_effect,
    was_reset,
)

_NEVER_US = 10**15
STORES = (Kind.COMMIT, Kind.RESET)


def broken(rows: Rows, config: Config) -> bool:
    return any(
        _answer(look) not in _may_be_stored(rows, config, stored, look)
        and not _is_excused(rows, config, stored, look)
        for look in of(rows, Kind.FETCH_OFFSET)
        if _answer(look) is not None
        for stored in of(rows, *STORES)
        if same_lane(stored, look) and _was_on_disk(rows, config, stored, look)
    )


def _answer(look: Row) -> int | None:
    if look.outcome is Outcome.OK or (look.outcome is Outcome.REFUSED and look.value == -1):
        return look.value
    return None


def _was_on_disk(rows: Rows, config: Config, stored: Row, look: Row) -> bool:
    later = [
        crash
        for crash in of(rows, Kind.CRASH)
        if crash.broker == stored.broker and not before(crash, stored) and before(crash, look)
    ]
    may_be_held_off = any(
        same_lane(reset, stored) and reset.seq_begin < end_of(stored)
        for reset in took_effect(rows, Kind.RESET)
    )
    if stored.outcome is not Outcome.OK or (stored.value or -1) < 0 or not later:
        return False
    if stored.kind is Kind.COMMIT and may_be_held_off:
        return False
    had_ms = (later[0].started_us - (stored.ended_us or 0)) / 1_000
    needs_ms = config.stored_each_ms
    if not _has_written(rows, config, stored):
        needs_ms = max(needs_ms, config.stored_first_ms)
    return had_ms > needs_ms + config.schedule_slack_ms


def _has_written(rows: Rows, config: Config, stored: Row) -> bool:
    """Was the broker's first write certainly over when the commit began?"""
    first_us = (config.stored_first_ms + config.schedule_slack_ms) * 1_000
    return any(
        row.outcome in (Outcome.OK, Outcome.REFUSED)
        and same_lane(row, stored)
        and before(row, stored)
        and stored.started_us - (row.ended_us or 0) > first_us
        and not broker_died(rows, row.broker, row.seq_begin, end_of(stored))
        for row in of(rows, Kind.FETCH_OFFSET, *STORES)
    )


def _since(rows: Rows, config: Config, stored: Row, look: Row) -> list[Row]:
    return [
        row
        for row in took_effect(rows, *STORES)
        if same_lane(row, stored)
        and row.seq_begin < end_of(look)
        and (
            may_be_applied_after(config, row, stored)
            or _until_us(rows, config, row) >= stored.started_us
        )
    ]


def _until_us(rows: Rows, config: Config, request: Row) -> int:
    """When it arrived at the latest: within the bound for delays, or of the end of what held it up."""
    bound_us = config.delay_bound_ms * 1_000
    until_us = _NEVER_US if request.ended_us is None else request.started_us + bound_us
    for pause in of(rows, Kind.PAUSE):
        over_us = pause.ended_us or 0
        if pause.broker == request.broker and pause.started_us <= until_us:
            until_us = max(until_us, over_us + bound_us if request.started_us <= over_us else 0)
    return until_us


def _is_under_way(rows: Rows, look: Row, crash: Row) -> bool:
    """Was an operator moving the lane's offset as the broker died?"""
    return any(
        same_lane(reset, look)
        and crash.broker == look.broker
        and reset.seq_begin < crash.seq_begin < end_of(reset)
        for reset in took_effect(rows, Kind.RESET)
    )


def _may_be_stored(rows: Rows, config: Config, stored: Row, look: Row) -> set[int | None]:
    return {stored.value, *(row.value for row in _since(rows, config, stored, look))}


def _is_excused(rows: Rows, config: Config, stored: Row, look: Row) -> bool:
    resets = [
        reset
        for reset in took_effect(rows, Kind.RESET)
        if same_lane(reset, look) and reset.seq_begin < end_of(look)
    ]
    removed = any(
        same_queue(trim, stored)
        and trim.seq_begin < end_of(look)
        and min(row.value or 0 for row in [stored, *_since(rows, config, stored, look)])
        <= (trim.value or 0)
        for trim in took_effect(rows, Kind.TRIM)
    )
    stood_still = any(
        row.broker == stored.broker and row.seq_begin < end_of(look) and not before(row, stored)
        for row in of(rows, Kind.PAUSE)
    ) or any(
        row.seq_begin < end_of(look) and filled_a_disk(row, look.broker)
        for row in of(rows, Kind.FAULT)
    )
    unsaid = any(row.value is None for row in [*resets, *_since(rows, config, stored, look)])
    return (
        (removed and look.value == -1)
        or stood_still
        or unsaid
        or was_reset(rows, look, look)
        or any(_is_under_way(rows, look, crash) for crash in of(rows, Kind.CRASH))
        or (bool(resets) and config.dialect == "4.9")
    )
