"""ORD-10: what an incarnation delivers again was put back.

Decisions where the page leaves room:

- What clears what is remembered does so if it was not over when the message's last call began, and was answered (a
  commit: begun) before the message came again.
- A ROLLBACK, or what may have been one, put back what was taken if it began after the message's last call did, and
  before the message came again.
- A pull that was refused, by whatever code, goes on where its answer says.
- Of small histories all is remembered: none reaches a thousand offsets back.
"""

from __future__ import annotations

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import Kind, Outcome
from tests.definitions.words import (
    AUTO,
    OFFSET_MOVED,
    Rows,
    acknowledges,
    adds,
    asks_again,
    before,
    began_before,
    between,
    calls,
    is_correction,
    may_be_adopted,
    may_have_rolled_back,
    of,
    of_its_client,
    same_call,
    same_incarnation,
    was_reset,
)


def broken(rows: Rows, config: Config) -> bool:
    return any(_came_again(rows, call) for call in calls(rows) if adds(rows, call))


def _came_again(rows: Rows, call: Row) -> bool:
    earlier = [
        other
        for other in calls(rows)
        if other.queue_offset == call.queue_offset
        and began_before(other, call)
        and same_incarnation(rows, other, call)
    ]
    if not earlier:
        return False
    last = earlier[-1]
    return (
        before(last, call)
        and not asks_again(last)
        and not may_have_rolled_back(last)
        and last.outcome not in (Outcome.UNKNOWN, Outcome.CUT)
        and not _was_taken_back(rows, last, call)
        and not was_reset(rows, last, call)
        and not any(
            _clears(rows, row, call) and not before(row, last)
            for row in of(rows, Kind.FETCH_OFFSET, Kind.COMMIT, Kind.PULL)
        )
    )


def _was_taken_back(rows: Rows, last: Row, call: Row) -> bool:
    return (
        last.outcome is Outcome.SUCCESS
        and last.commit_mode != AUTO
        and any(
            may_have_rolled_back(other)
            and between(last, other, call)
            and same_incarnation(rows, other, call)
            and not _finished_between(rows, last, other)
            for other in calls(rows)
        )
    )


def _finished_between(rows: Rows, last: Row, rollback: Row) -> bool:
    return any(
        (other.outcome is Outcome.COMMIT or acknowledges(other))
        and between(last, other, rollback)
        and same_incarnation(rows, other, last)
        and not same_call(other, rollback)
        for other in calls(rows)
    )


def _clears(rows: Rows, row: Row, call: Row) -> bool:
    if row.kind is Kind.FETCH_OFFSET:
        return may_be_adopted(row) and of_its_client(rows, row, call) and before(row, call)
    if not of_its_client(rows, row, call):
        return False
    if row.kind is Kind.COMMIT:
        return is_correction(rows, row) and began_before(row, call)
    goes_back = row.value is not None and row.value < (row.queue_offset or 0)
    is_told = row.code in (None, OFFSET_MOVED) or row.outcome is Outcome.REFUSED
    return goes_back and is_told and before(row, call)
