"""DLQ-2: a message that one incarnation gives up, with a send that was answered at once, is dead-lettered once.

Decisions where the page leaves room:

- A message is known by its id, and every dead letter of it in its group counts.
- Its place is the lane and offset that a dead letter of it names.
- "Consumed in manual mode" is asked of all calls of the message in the group, and of its dead letters that tell a mode.
- A frame that came twice excuses a second place in the dead letters, and no second dead letter of the client's.
- A place in the dead letters is an offset that a read which succeeded showed.
"""

from __future__ import annotations

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import DLQ_PREFIX, Kind, Outcome
from tests.definitions.words import AUTO, MANUAL, WEAK, Rows, calls, of, offset, same_incarnation


def broken(rows: Rows, config: Config) -> bool:
    return any(_is_too_often(rows, config, letter) for letter in of(rows, Kind.DEAD_LETTER))


def _is_too_often(rows: Rows, config: Config, letter: Row) -> bool:
    letters = [other for other in of(rows, Kind.DEAD_LETTER) if _is_of(other, letter)]
    claimed = all(
        other.outcome is Outcome.OK
        and other.code not in WEAK
        and (other.attempt or 1) == 1
        and other.commit_mode != MANUAL
        and (other is letter or same_incarnation(rows, other, letter))
        and (other.lane, offset(other)) == (letter.lane, offset(letter))
        for other in letters
    ) and all(call.commit_mode == AUTO for call in calls(rows) if _is_of(call, letter))
    if config.batch > 1 and len(letters) > 1:
        return False
    twice = any((fault.detail or "").startswith("duplicate ") for fault in of(rows, Kind.FAULT))
    return claimed and (len(letters) > 1 or (not twice and len(_places(rows, letter)) > 1))


def _is_of(row: Row, letter: Row) -> bool:
    return (row.group, row.message_id) == (letter.group, letter.message_id)


def _places(rows: Rows, letter: Row) -> set[object]:
    return {
        (read.queue, read.queue_offset)
        for read in of(rows, Kind.READ)
        if read.outcome is Outcome.OK
        and read.group == letter.group
        and (read.topic or "").startswith(DLQ_PREFIX)
        and read.source_id == letter.message_id
    }
