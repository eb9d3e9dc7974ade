"""ORD-5: an incarnation never delivers below the offset that it fetched at its start.

Decisions where the page leaves room:

- A look-up counts when it is answered; "delivered" is asked of that moment, and a call has delivered when it begins.
- After an answer that nothing is stored, or where the first thing that is seen of it is a delivery, nobody knows the
  start, until a look-up sets it anew while nothing has been delivered. Other refusals, and no answer, say nothing.
- An incarnation begins with its last ADD, or, where none was seen, with the first row that names it: what was over
  by then, or names none and began before, leads it nowhere.
- A commit that was refused tells a correction all the same.
"""

from __future__ import annotations

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import Kind, Outcome
from tests.definitions.words import (
    Rows,
    adds,
    before,
    began_before,
    calls,
    of,
    of_its_client,
    offset,
    same_incarnation,
    was_reset,
)

NOTHING_STORED = -1


def broken(rows: Rows, config: Config) -> bool:
    return any(
        call.incarnation is not None
        and any(offset(call) < start for start in _start(rows, call))
        and not was_reset(rows, _begin(rows, call), call)
        and not _was_led_elsewhere(rows, call)
        for call in calls(rows)
    )


def _begin(rows: Rows, call: Row) -> Row:
    """Its last ADD, or, where none was seen, the first row that names it."""
    of_it = [row for row in rows if same_incarnation(rows, row, call)]
    return [*of_it[:1], *adds(rows, call)][-1]


def _start(rows: Rows, call: Row) -> list[int]:
    """Where it began, if anybody knows."""
    start = [add.value for add in adds(rows, call)[-1:] if add.value is not None]
    look_ups = [
        look
        for look in of(rows, Kind.FETCH_OFFSET)
        if same_incarnation(rows, look, call) and before(look, call)
    ]
    for look in sorted(look_ups, key=lambda row: row.seq_end or 0):
        if look.outcome is Outcome.REFUSED and look.value == NOTHING_STORED:
            start = []
        if look.outcome is Outcome.OK and look.value is not None:
            went_on = _has_delivered(rows, look)
            start = [min(known, look.value) for known in start] if went_on else [look.value]
    return start


def _has_delivered(rows: Rows, look: Row) -> bool:
    return any(
        same_incarnation(rows, call, look) and call.seq_begin < (look.seq_end or 0)
        for call in calls(rows)
    )


def _was_led_elsewhere(rows: Rows, call: Row) -> bool:
    return any(
        of_its_client(rows, row, call)
        and began_before(row, call)
        and not began_before(row, _begin(rows, call))
        and (row.detail == "corrected" or _goes_back(row))
        for row in of(rows, Kind.COMMIT, Kind.PULL)
    )


def _goes_back(row: Row) -> bool:
    return (
        row.kind is Kind.PULL
        and None not in (row.value, row.queue_offset)
        and ((row.value or 0) < (row.queue_offset or 0))
    )
