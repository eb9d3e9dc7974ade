"""Places of messages where the system numbers none that a history could use.

Such messages carry a number of their producer's: when they were published, in µs by the machine's clock. Drivers tell
it as the offset, and a history has places that count from 0 in each queue, in the order of these numbers. So a place
says when a message was published, and nothing of what the system keeps; what was published is read out of a log, which
no group consumes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from specs.history.row import Row
from specs.vocabulary import Kind, Outcome, Queue


def confirmed(rows: Iterable[Row]) -> list[Row]:
    """Without what was read of messages whose send had no good end: of a log and the groups' queues they may lie in
    some and not in others, and nothing is promised of any of them.
    """
    kept = list(rows)
    unknown = {
        row.message_id for row in kept if row.kind is Kind.SEND and row.outcome is not Outcome.OK
    }
    return [row for row in kept if row.kind is not Kind.READ or row.message_id not in unknown]


def placed(rows: Iterable[Row]) -> list[Row]:
    """With places that count from 0 in each queue, in the order in which the messages were published."""
    kept = list(rows)
    numbers: dict[Queue, set[int]] = defaultdict(set)
    for row in kept:
        if row.queue_offset is not None:
            numbers[row.queue].add(row.queue_offset)
    places = {
        queue: {number: place for place, number in enumerate(sorted(found))}
        for queue, found in numbers.items()
    }
    return [_placed(row, places.get(row.queue, {})) for row in kept]


def _placed(row: Row, places: Mapping[int, int]) -> Row:
    if row.queue_offset is not None:
        return row._replace(queue_offset=places[row.queue_offset])
    if row.kind is Kind.COMMIT and row.value is not None:
        return row._replace(value=places[row.value - 1] + 1)
    if row.kind is Kind.READ and row.value:
        return row._replace(value=len(places))
    return row
