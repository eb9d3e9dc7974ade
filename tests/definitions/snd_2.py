"""SND-2: every message that is read or delivered was sent before, and lies in no more places than it was sent times.

Decisions where the page leaves room:

- A sighting is judged by what had begun when a delivery began, or a read ended; places by what was seen until then.
- Certainly refused is what SND-3 takes for that: an answer with a code other than 1 and 10 to 12. Where every try was
  refused, it is for SND-3 to say that the message lies anywhere.
- Of a message with a try that does not tell its number, or of which a number is missing, nothing is said about places.
"""

from __future__ import annotations

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import Kind, Outcome
from tests.definitions.words import Rows, is_copy_topic, of, was_refused_for_certain, was_seen


def broken(rows: Rows, config: Config) -> bool:
    return any(
        _is_invented(rows, seen)
        or (_is_in_too_many_places(rows, seen) and not _came_twice(rows, seen))
        for seen in [*_sightings(rows), *_answers(rows)]
    )


def _came_twice(rows: Rows, seen: Row) -> bool:
    """May a frame have come twice before that?"""
    return any(
        (fault.detail or "").startswith("duplicate ") and fault.seq_begin < _moment(seen)
        for fault in of(rows, Kind.FAULT)
    )


def _sightings(rows: Rows) -> list[Row]:
    seen = [row for row in of(rows, Kind.DELIVER, Kind.READ) if was_seen(row)]
    return [row for row in seen if row.source_id is not None]


def _answers(rows: Rows) -> list[Row]:
    """The sends whose answer names the message's place."""
    return [
        send
        for send in of(rows, Kind.SEND)
        if send.outcome is Outcome.OK
        and send.queue_offset is not None
        and not send.delay_level
        and not (send.detail or "").startswith("half")
    ]


def _moment(row: Row) -> int:
    if row.kind is Kind.DELIVER:
        return row.seq_begin
    return row.seq_begin if row.seq_end is None else row.seq_end


def _is_invented(rows: Rows, seen: Row) -> bool:
    sent = any(
        send.message_id == seen.source_id and send.seq_begin < _moment(seen)
        for send in of(rows, Kind.SEND)
    )
    may_be_a_copy = is_copy_topic(seen) and seen.origin_id is None
    return seen.kind is not Kind.SEND and not sent and not may_be_a_copy


def _is_in_too_many_places(rows: Rows, seen: Row) -> bool:
    tries = [
        send
        for send in of(rows, Kind.SEND)
        if send.message_id == seen.message_id
        and send.topic == seen.topic
        and send.seq_begin < _moment(seen)
    ]
    attempts = {send.attempt for send in tries}
    all_told = attempts == set(range(1, len(attempts) + 1))
    may_be_stored = [send for send in tries if not was_refused_for_certain(send)]
    places = {
        (row.queue, row.queue_offset)
        for row in [*_sightings(rows), *_answers(rows)]
        if row.message_id == seen.message_id
        and row.topic == seen.topic
        and row.origin_id is None
        and _moment(row) <= _moment(seen)
    }
    return all_told and 0 < len(may_be_stored) < len(places)
