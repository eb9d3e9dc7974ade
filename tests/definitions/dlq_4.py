"""DLQ-4: in a dead-letter queue the messages of one lane lie in the order in which they were given up.

Decisions where the page leaves room:

- A message is known by its id; every dead letter of it in the group counts, whatever became of it.
- A place is an offset that a read which succeeded showed in a queue of the group's dead letters.
"""

from __future__ import annotations

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import DLQ_PREFIX, Kind, Outcome, Queue
from tests.definitions.words import Rows, before, of, same_lane

Places = set[tuple[Queue, int | None]]


def broken(rows: Rows, config: Config) -> bool:
    return any(
        _lie_wrong(_places(rows, first), _places(rows, second))
        for first in of(rows, Kind.DEAD_LETTER)
        for second in of(rows, Kind.DEAD_LETTER)
        if first.message_id != second.message_id
        and same_lane(first, second)
        and before(first, second)
        and _is_the_only_one(rows, first)
        and _is_the_only_one(rows, second)
    )


def _is_the_only_one(rows: Rows, letter: Row) -> bool:
    all_of_it = [
        other
        for other in of(rows, Kind.DEAD_LETTER)
        if (other.group, other.message_id) == (letter.group, letter.message_id)
    ]
    return all_of_it == [letter] and letter.outcome is Outcome.OK and (letter.attempt or 1) == 1


def _places(rows: Rows, letter: Row) -> Places:
    return {
        (read.queue, read.queue_offset)
        for read in of(rows, Kind.READ)
        if read.outcome is Outcome.OK
        and read.group == letter.group
        and (read.topic or "").startswith(DLQ_PREFIX)
        and read.source_id == letter.message_id
        and read.queue_offset is not None
    }


def _lie_wrong(first: Places, second: Places) -> bool:
    return len(first) == len(second) == 1 and any(
        one[0] == two[0] and (one[1] or 0) > (two[1] or 0) for one in first for two in second
    )
