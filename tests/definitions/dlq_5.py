"""DLQ-5: a dead letter has the body, the tags and the key of its message, and names its topic and the id of its origin.

Decisions where the page leaves room:

- The original is shown by a row of another topic than those of retries and dead letters that has the body's hash, and
  that began before the dead letter had been read.
- Seen with different contents is an id whose rows differ in body, tags, key or topic.
- The declaration is not looked at: that a copy names no origin is known here where the reader recorded its topic, and
  another dead letter of the run was found with the id of its origin.
- A dead letter that a recorded consumer sent is one that was acknowledged in that group, of the message's id, before
  the reading was over.
"""

from __future__ import annotations

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import DLQ_PREFIX, Kind, Outcome
from tests.definitions.words import Rows, end_of, is_copy_topic, of


def broken(rows: Rows, config: Config) -> bool:
    return any(
        _is_changed(rows, read) or (config.dialect != "4.9" and _names_no_origin(rows, read))
        for read in of(rows, Kind.READ)
        if _is_dead(read) and read.body_hash is not None
    )


def _is_dead(read: Row) -> bool:
    return read.outcome is Outcome.OK and (read.topic or "").startswith(DLQ_PREFIX)


def _is_changed(rows: Rows, read: Row) -> bool:
    originals = {
        (row.body_hash, row.tags, row.sharding_key, row.topic)
        for row in of(rows, Kind.SEND, Kind.DELIVER)
        if row.message_id == read.source_id
        and row.body_hash is not None
        and not is_copy_topic(row)
        and row.seq_begin < end_of(read)
    }
    return len(originals) == 1 and any(
        original[:3] != (read.body_hash, read.tags, read.sharding_key)
        or read.view not in (None, original[3])
        for original in originals
    )


def _names_no_origin(rows: Rows, read: Row) -> bool:
    return (
        read.origin_id is None
        and read.view is not None
        and any(
            other.origin_id is not None and (other.topic or "").startswith(DLQ_PREFIX)
            for other in of(rows, Kind.READ)
        )
        and any(
            letter.outcome is Outcome.OK
            and end_of(letter) <= end_of(read)
            and (letter.group, letter.message_id) == (read.group, read.message_id)
            for letter in of(rows, Kind.DEAD_LETTER)
        )
    )
