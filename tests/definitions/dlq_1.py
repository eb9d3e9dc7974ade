"""DLQ-1: an exhausted message reaches its group's dead letters within the bound.

Decisions where the page leaves room:

- A copy has arrived if anybody read it after its acknowledged dead letter was begun, or the last delivery of what was
  passed by.
- A copy that was read before the last reading of its queue is gone if that one ended at or before it.
- The final drain is the last reading of each queue; if that one failed, nothing is decided.
- The bound does not run while the broker stands still.
- What was passed by has to be there from the bound after the begin of the call that passed it.
- A removal excuses if it began before the reading ended, and after any dead letter of the message, or its last delivery
  where it was passed by, had begun.
- A client may be told of a reset late: one since the incarnation was added excuses what is passed by.
- Where an operator was moving a lane's offset when the last reading began nothing is claimed of its messages.
- A message that comes again in its incarnation, even after others, was not passed by for good.
- A message of which somebody of the group began to send a dead letter was not passed by in silence.
"""

from __future__ import annotations

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import LISTENER_SUSPENDS, Kind, Outcome, Queue, dead_letter_topic
from tests.definitions.words import (
    AUTO,
    WEAK,
    Rows,
    awake_us,
    before,
    began_before,
    calls,
    filled_a_disk,
    is_marker,
    moved_in_its_life,
    of,
    offset,
    same_incarnation,
    same_lane,
    took_effect,
)


def broken(rows: Rows, config: Config) -> bool:
    groups = {row.group for row in rows if row.group}
    return config.flush != "async" and any(
        _missing(rows, config, group) > len(_nameless(rows, config, group)) for group in groups
    )


def _missing(rows: Rows, config: Config, group: str) -> int:
    """How many places (lane, offset, id) were given up, must have been found and were not."""
    due = _acknowledged(rows, group) + _passed_by(rows, config, group)
    places = {
        _place(row): row
        for row, since_us in due
        if _was_read(rows, config, group, since_us)
        and not _is_being_moved(rows, row, group)
        and not any(
            _place(other) == _place(row) and _may_be_removed(rows, config, group, other)
            for other, _ in due
        )
    }
    missing: dict[str | None, int] = {}
    for place, row in places.items():
        same = [other for other in places.values() if other.message_id == row.message_id]
        copies = {
            (copy.queue, copy.queue_offset)
            for copy in _copies(rows, group)
            if row.message_id in _names(rows, config, copy)
            and not _is_gone(rows, copy)
            and any(_place(other) == place and not before(copy, other) for other, _ in due)
        }
        lacks = len(same) - len(copies)
        missing[row.message_id] = max(missing.get(row.message_id, 0), lacks)
    return sum(missing.values())


def _is_gone(rows: Rows, copy: Row) -> bool:
    """Did a later reading, the last of its queue, end at or before it?"""
    markers = [row for row in of(rows, Kind.READ) if is_marker(row) and row.seq_end is not None]
    mine = [row for row in markers if row.queue == copy.queue]
    last = max(mine, key=lambda row: row.seq_end or 0, default=None)
    if last is None or last.value is None:
        return False
    return copy.seq_begin < last.seq_begin and last.value <= offset(copy)


def _place(row: Row) -> tuple[object, ...]:
    return (row.lane, row.queue_offset, row.message_id)


Due = tuple[Row, int]
"""The row that gave a message up, or its last delivery, and since when its copy counts, in µs."""


def _acknowledged(rows: Rows, group: str) -> list[Due]:
    return [
        (letter, letter.ended_us)
        for letter in of(rows, Kind.DEAD_LETTER)
        if letter.group == group
        and letter.outcome is Outcome.OK
        and letter.code not in WEAK
        and letter.message_id is not None
        and letter.ended_us is not None
    ]


def _passed_by(rows: Rows, config: Config, group: str) -> list[Due]:
    return [
        (message, call.started_us)
        for message in calls(rows)
        for call in calls(rows)
        if message.group == group
        and _is_exhausted(config, message)
        and message.commit_mode == AUTO
        and before(message, call)
        and offset(call) > offset(message)
        and same_incarnation(rows, message, call)
        and not moved_in_its_life(rows, call)
        and not _came_again_or_was_sent(rows, message)
    ]


def _is_exhausted(config: Config, call: Row) -> bool:
    """Was it put back with its retries used up?"""
    limit, retries = config.max_reconsume_times, call.reconsume_times
    return call.outcome in LISTENER_SUSPENDS and 0 <= limit <= (-1 if retries is None else retries)


def _came_again_or_was_sent(rows: Rows, message: Row) -> bool:
    came_again = any(
        began_before(message, other)
        and other.queue_offset == message.queue_offset
        and same_incarnation(rows, message, other)
        for other in calls(rows)
    )
    return came_again or any(
        letter.queue_offset == message.queue_offset
        and same_lane(letter, message)
        and not before(letter, message)
        for letter in of(rows, Kind.DEAD_LETTER)
    )


def _copies(rows: Rows, group: str) -> list[Row]:
    return [
        read
        for read in of(rows, Kind.READ)
        if read.topic == dead_letter_topic(group)
        and read.queue_offset is not None
        and read.outcome is Outcome.OK
    ]


def _given_up(rows: Rows, config: Config, copy: Row) -> set[str | None]:
    """The messages of the copy's group that were given up, or should have been."""
    return {
        row.message_id
        for row in of(rows, Kind.DEAD_LETTER, Kind.DELIVER)
        if row.group == copy.group and row.message_id is not None
        if row.kind is Kind.DEAD_LETTER or (row.commit_mode == AUTO and _is_exhausted(config, row))
    }


def _names(rows: Rows, config: Config, copy: Row) -> set[str | None]:
    """The message that the copy was made from: its origin, or itself where that is none that was given up."""
    if copy.origin_id in _given_up(rows, config, copy):
        return {copy.origin_id}
    return {copy.message_id} & _given_up(rows, config, copy)


def _nameless(rows: Rows, config: Config, group: str) -> set[tuple[object, ...]]:
    return {
        (copy.queue, copy.queue_offset, copy.message_id)
        for copy in _copies(rows, group)
        if copy.origin_id is None and not _names(rows, config, copy)
    }


def _was_read(rows: Rows, config: Config, group: str, since_us: int) -> bool:
    """Were all dead-letter queues that the history shows read to their ends, the bound later or still later?"""
    topic = dead_letter_topic(group)
    shown = [
        row
        for row in [*of(rows, Kind.READ), *took_effect(rows, Kind.ADD, Kind.TRIM)]
        if row.topic == topic
    ]
    added = any(row.kind is Kind.ADD for row in shown)
    if not shown or (any(call.topic == topic for call in calls(rows)) and not added):
        return False
    last = _last_readings(rows, topic)
    return all(
        row.queue in last
        and last[row.queue].outcome is Outcome.OK
        and awake_us(rows, last[row.queue], since_us) >= config.dead_letter_bound_ms * 1_000
        for row in shown
    )


def _last_readings(rows: Rows, topic: str) -> dict[Queue, Row]:
    markers = [read for read in of(rows, Kind.READ) if is_marker(read) and read.topic == topic]
    return {read.queue: read for read in sorted(markers, key=lambda read: read.seq_end or 0)}


def _is_being_moved(rows: Rows, row: Row, group: str) -> bool:
    """Is an operator moving the lane's offset when dead letters are read?"""
    return any(
        same_lane(reset, row) and began_before(reset, last) and not before(reset, last)
        for reset in took_effect(rows, Kind.RESET)
        for last in _last_readings(rows, dead_letter_topic(group)).values()
    )


def _may_be_removed(rows: Rows, config: Config, group: str, given_up: Row) -> bool:
    """Did the broker remove dead letters of the group between this row's begin and the last reading's end?

    Not what was too young, unless a clock was set or its disk was filled.
    """
    topic = dead_letter_topic(group)
    return any(
        trim.topic == topic
        and began_before(given_up, trim)
        and (
            trim.started_us - given_up.started_us >= config.keep_ms * 1_000
            or any(row.kind is Kind.CLOCK_STEP or filled_a_disk(row, trim.broker) for row in rows)
        )
        and trim.seq_begin < (read.seq_end or read.seq_begin)
        for trim in took_effect(rows, Kind.TRIM)
        for read in _last_readings(rows, topic).values()
    )
