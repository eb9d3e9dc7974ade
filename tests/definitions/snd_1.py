"""SND-1: a message whose send was acknowledged is never lost while it has to be kept.

Decisions where the page leaves room:

- A reading is a row without a message; what anybody read while it lasted, at that offset of the queue, counts for it.
- Where a read of that offset failed, while the reading lasted, the reading says nothing of it.
- Where an acknowledged message should lie and another one is read after the acknowledgement, it is lost at once; where
  it had been removed, it should not.
- "Longer ago than the bound" includes the bound itself: within the bound it should have been shown.
- A clock that was set, or a disk that was filled, excuses a removal whenever that was, up to the end of the reading.
- Whether a message was read before is asked of all readings that had begun before this one.
"""

from __future__ import annotations

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import DLQ_PREFIX, RETRY_PREFIX, Kind, Outcome
from tests.definitions.words import (
    WEAK,
    Rows,
    awake_us,
    before,
    end_of,
    filled_a_disk,
    is_marker,
    of,
    same_queue,
    took_effect,
)


def broken(rows: Rows, config: Config) -> bool:
    return any(
        _is_missing(rows, config, send, read) or _is_another(rows, config, send, read)
        for send in of(rows, Kind.SEND)
        if _is_kept(send)
        for read in _readings(rows)
        if same_queue(send, read) and before(send, read)
        if not _died_unflushed(rows, config, send, read)
    )


def _readings(rows: Rows) -> list[Row]:
    """Readings, and what was found: one that failed found nothing."""
    return [row for row in of(rows, Kind.READ) if row.outcome is Outcome.OK]


def _is_kept(send: Row) -> bool:
    """Was it acknowledged in full, as a plain message?"""
    topic = send.topic or ""
    return (
        send.outcome is Outcome.OK
        and send.queue_offset is not None
        and send.code not in WEAK
        and not send.delay_level
        and not (send.detail or "").startswith("half")
        and not topic.startswith((RETRY_PREFIX, DLQ_PREFIX))
    )


def _died_unflushed(rows: Rows, config: Config, send: Row, read: Row) -> bool:
    """May a crash before the end of the reading have taken it?"""
    allowed_us = 1_000 * (config.flush_ms + config.schedule_slack_ms + config.disk_slack_ms)
    return config.flush == "async" and any(
        crash.broker == send.broker
        and not before(crash, send)
        and crash.seq_begin < end_of(read)
        and send.ended_us is not None
        and crash.started_us - send.ended_us < allowed_us
        for crash in of(rows, Kind.CRASH)
    )


def _is_missing(rows: Rows, config: Config, send: Row, read: Row) -> bool:
    """Was the queue read beyond its place, or long after it, and not the message?"""
    if not is_marker(read) or read.outcome is not Outcome.OK or read.value is None:
        return False
    place, sent_us = send.queue_offset or 0, send.ended_us or 0
    shown = [
        other
        for other in _readings(rows)
        if same_queue(other, send)
        and other.queue_offset == place
        and other.message_id in (None, send.message_id)
        and not before(other, send)
    ]
    failed = [
        other
        for other in of(rows, Kind.READ)
        if other.outcome is not Outcome.OK
        and same_queue(other, send)
        and other.queue_offset == place
    ]
    there = any(not before(other, read) and not before(read, other) for other in [*shown, *failed])
    due = (
        place < read.value
        or awake_us(rows, read, sent_us) >= config.delay_bound_ms * 1_000
        or any(before(other, read) and other.message_id is not None for other in shown)
    )
    return due and not there and not _was_removed(rows, config, send, read)


def _is_another(rows: Rows, config: Config, send: Row, read: Row) -> bool:
    return (
        read.queue_offset is not None
        and read.queue_offset == send.queue_offset
        and read.message_id is not None
        and read.message_id != send.message_id
        and not _was_removed(rows, config, send, read)
    )


def _was_removed(rows: Rows, config: Config, send: Row, read: Row) -> bool:
    """Had the broker announced a higher minimum by the end of the reading, and never before the message's age?"""
    removals = [
        trim
        for trim in took_effect(rows, Kind.TRIM)
        if same_queue(trim, send)
        and trim.value is not None
        and (send.queue_offset or 0) < trim.value
        and trim.seq_begin < (read.seq_end or read.seq_begin)
    ]
    return bool(removals) and not any(
        _was_too_young(rows, config, send, trim, read) for trim in removals
    )


def _was_too_young(rows: Rows, config: Config, send: Row, trim: Row, read: Row) -> bool:
    """Is it younger than messages are kept, though no disk was filled and no clock was set?"""
    excused = any(
        row.kind is Kind.CLOCK_STEP or filled_a_disk(row, send.broker)
        for row in of(rows, Kind.FAULT, Kind.CLOCK_STEP)
        if row.seq_begin < (read.seq_end or read.seq_begin)
    )
    age_us = trim.started_us - send.started_us
    return not excused and config.keep_ms > 0 and age_us < config.keep_ms * 1_000
