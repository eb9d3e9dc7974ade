"""LIV-1: when faults are healed, every message of a lane that somebody has ends finished.

Decisions where the page leaves room:

- Somebody has a lane whose last ADD before the drain was not followed by its drop, a departure or a death,
  nor lies in the midst of a departure.
- The drain finds what is read while it lasts; what it finds has to be finished by what
  had begun before it. Nothing is claimed of a lane of which its owner has a call running when the drain begins.
- A call of the message that ends after the drain began may finish it.
- A dead letter that was sent and not answered may have given the message up, unless that was delivered since.
- An operator's move of the lane, or a call of manual mode on it, before the drain ends silences all of the lane.
"""

from __future__ import annotations

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import Kind, Outcome
from tests.definitions.words import (
    MANUAL,
    Rows,
    adds,
    before,
    began_before,
    between,
    calls,
    end_of,
    ended_well,
    finished,
    is_marker,
    left_with,
    of,
    offset,
    same_incarnation,
    same_lane,
    same_queue,
    took_effect,
    was_seen,
)


def broken(rows: Rows, config: Config) -> bool:
    if config.subscription != "*" or config.flush == "async":
        return False
    return any(
        _is_mine(rows, config, owner, drain, offset(message))
        and not _is_finished(rows, owner, drain, offset(message))
        for drain in of(rows, Kind.READ)
        if is_marker(drain) and drain.detail == "settled" and drain.outcome is Outcome.OK
        for owner in _owners(rows, drain)
        for message in of(rows, Kind.READ)
        if message.queue_offset is not None and same_queue(message, drain) and was_seen(message)
        if not before(message, drain) and not before(drain, message)
    )


def _owners(rows: Rows, drain: Row) -> list[Row]:
    """Of each lane of the queue its last ADD, where it still holds when the drain begins."""
    begins = [
        add
        for add in took_effect(rows, Kind.ADD)
        if same_queue(add, drain) and began_before(add, drain)
    ]
    last = {add.lane: add for add in begins}
    return [
        add
        for add in last.values()
        if _holds(rows, add, drain) and not _is_silent(rows, add, drain)
    ]


def _holds(rows: Rows, add: Row, drain: Row) -> bool:
    dropped = any(
        same_incarnation(rows, add, drop) and between(add, drop, drain)
        for drop in took_effect(rows, Kind.DROP)
    )
    died = any(
        crash.client_id == add.client_id and between(add, crash, drain)
        for crash in of(rows, Kind.CRASH)
    )
    return not dropped and not died and not left_with(rows, add, drain)


def _is_silent(rows: Rows, add: Row, drain: Row) -> bool:
    unheard = any(
        (look.outcome is Outcome.UNKNOWN or (look.outcome is Outcome.OK and look.value is None))
        and same_incarnation(rows, look, add)
        and between(add, look, drain)
        for look in of(rows, Kind.FETCH_OFFSET)
    )
    return (
        unheard
        or any(
            same_lane(row, add) and began_before(row, drain)
            for row in took_effect(rows, Kind.RESET)
        )
        or any(
            same_lane(call, add) and call.commit_mode == MANUAL and began_before(call, drain)
            for call in calls(rows)
        )
    )


def _is_mine(rows: Rows, config: Config, owner: Row, drain: Row, place: int) -> bool:
    """Does it lie where the owner started, which somebody saw, or behind that; or behind where anybody of the lane did,
    if the group begins with the first message?"""
    starts = {
        (row.client_id, row.incarnation, len(adds(rows, row))): row.value
        for row in took_effect(rows, Kind.ADD, Kind.FETCH_OFFSET)
        if same_lane(row, owner) and began_before(row, drain) and row.value is not None
        if row.kind is Kind.ADD or adds(rows, row)
    }
    mine = starts.get((owner.client_id, owner.incarnation, len(adds(rows, owner))))
    lowest = min(starts.values()) if config.consume_from == "first" and starts else mine
    return mine is not None and lowest is not None and place >= lowest


def _is_finished(rows: Rows, owner: Row, drain: Row, place: int) -> bool:
    """Was it finished; or may its last call have ended well, though the lane was dropped, or does it go on?"""
    begun = [row for row in rows if began_before(row, drain)]
    its_calls = [call for call in calls(begun) if offset(call) == place and same_lane(call, owner)]
    over = [call for call in its_calls[-1:] if call.seq_end is not None]
    worked = any(
        ended_well(call) or call.outcome is Outcome.UNKNOWN or not before(call, drain)
        for call in over
    )
    runs = any(
        same_incarnation(rows, call, owner) and not before(call, drain) for call in calls(begun)
    )
    unclear = any(
        letter.outcome is Outcome.UNKNOWN
        and letter.queue_offset == place
        and same_lane(letter, owner)
        and not any(began_before(letter, call) for call in its_calls)
        for letter in of(begun, Kind.DEAD_LETTER)
    )
    later = drain._replace(group=owner.group, seq_begin=end_of(rows[-1]._replace(seq_end=None)))
    return worked or runs or unclear or finished(begun, later, place)
