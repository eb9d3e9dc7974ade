"""FLR-1: below the floor that the store tells of a group, every message that was handed out is finished.

Decisions where the page leaves room:

- What counts as finished, removed or given up was begun before the witness had its answer.
- An acknowledgement that was refused finished nothing. One that names no offset may be of any message whose hand-out
  had begun, unless one message and no other had been handed out with its id, and every hand-out told both; so may a
  hand-out that names none.
- A message was handed out as often as it may be if a hand-out of it that was asked for before the witness had its
  answer carried as many retries as the limit allows, or does not say how many, where there is a limit.
"""

from __future__ import annotations

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import Kind, Outcome
from tests.definitions.words import (
    Rows,
    before,
    of,
    offset,
    same_lane,
    same_queue,
    took_effect,
    was_moved_before,
)


def broken(rows: Rows, config: Config) -> bool:
    return any(
        floor.outcome is Outcome.OK
        and floor.value is not None
        and handed.outcome is Outcome.OK
        and same_lane(handed, floor)
        and before(handed, floor)
        and handed.queue_offset is not None
        and handed.queue_offset < floor.value
        and not _may_be_finished(rows, handed, floor)
        and not _may_be_given_up_unseen(rows, config, handed, floor)
        and not was_moved_before(rows, floor)
        for floor in of(rows, Kind.PROGRESS)
        for handed in of(rows, Kind.RECEIVE)
    )


def _may_be_finished(rows: Rows, handed: Row, floor: Row) -> bool:
    end = floor.seq_end or floor.seq_begin
    finished = any(
        same_lane(row, handed) and row.seq_begin < end and _may_be_of(rows, row, handed)
        for row in took_effect(rows, Kind.ACK, Kind.DEAD_LETTER)
    )
    removed = any(
        same_queue(trim, handed) and trim.seq_begin < end and offset(handed) < (trim.value or 0)
        for trim in took_effect(rows, Kind.TRIM)
    )
    return finished or removed


def _may_be_of(rows: Rows, request: Row, handed: Row) -> bool:
    """By its offset; or by that of the one message that was handed out with its id; or else by nothing that is told."""
    if request.queue_offset is not None:
        return request.queue_offset == handed.queue_offset
    shown = [
        row
        for row in of(rows, Kind.RECEIVE)
        if row.outcome is Outcome.OK and same_lane(row, handed) and before(row, request)
    ]
    named = {row.queue_offset for row in shown if row.message_id == request.message_id}
    told = all(None not in (row.queue_offset, row.message_id) for row in shown)
    if request.message_id is not None and told and len(named) == 1:
        return handed.queue_offset in named
    return not before(request, handed)


def _may_be_given_up_unseen(rows: Rows, config: Config, handed: Row, floor: Row) -> bool:
    limit = config.max_reconsume_times
    end = floor.seq_end or floor.seq_begin
    return limit >= 0 and any(
        same_lane(other, handed)
        and other.queue_offset in (None, handed.queue_offset)
        and (other.queue_offset is not None or not before(other, handed))
        and other.seq_begin < end
        and (other.reconsume_times is None or other.reconsume_times >= limit)
        for other in took_effect(rows, Kind.RECEIVE)
    )
