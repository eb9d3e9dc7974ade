"""The last call of each incarnation, and which of its messages were given up: what the clauses about repeats share.

A lane has one call at a time, so what a call leaves behind is known when the next one begins. A call that overlaps
the one before says nothing here (ORD-3 does).
"""

from __future__ import annotations

from collections.abc import Iterable

from specs.clauses.base import NOTHING, Context, Finding, Judge, ended_before
from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import Kind, Outcome

CALL_KINDS = frozenset({Kind.DELIVER, Kind.DEAD_LETTER, Kind.ADD, Kind.RESET})


class Calls:
    """One incarnation: the rows of its last call, and the dead letters of these messages since."""

    __slots__ = ("failed", "given_up", "op", "rows")

    def __init__(self, op: int) -> None:
        self.op = op
        self.rows: list[Row] = []
        self.given_up: set[int] = set()
        self.failed: dict[int, Row] = {}  # offset → its last dead letter that was not acknowledged

    def owed(self, config: Config) -> list[Row]:
        """The messages of a call that asked for them again which nobody gave up.

        A message whose retries were used up, and of whose dead letter there is no row, may have been given up where
        nobody recorded it (a foreign client's own history): that is DLQ-1's business, by reading the dead letters.
        """
        return [row for row in self.rows if row.queue_offset not in self.given_up and not self._unseen(row, config)]

    def _unseen(self, row: Row, config: Config) -> bool:
        return may_be_given_up(row, config) and row.queue_offset not in self.failed


def may_be_given_up(row: Row, config: Config) -> bool:
    """Could this delivery, by what is known of its counter, have been the last one allowed?"""
    limit, times = config.max_reconsume_times, row.reconsume_times
    return limit >= 0 and (times is None or times >= limit)


class CallsJudge(Judge):
    """Keeps the last call of each incarnation of a lane, and asks its subclass when the next one begins."""

    __slots__ = ("calls",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.calls: dict[str, Calls] = {}

    def next_call(self, calls: Calls, row: Row) -> Iterable[Finding]:
        """The first row of a call begins; `calls` still holds the call before, which is over."""
        return NOTHING

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.DELIVER:
            return self._delivered(row)
        if row.kind is Kind.RESET:
            self.calls.clear()
        elif row.kind is Kind.ADD and row.incarnation is not None:
            self.calls.pop(row.incarnation, None)
        return NOTHING

    def _delivered(self, row: Row) -> Iterable[Finding]:
        if row.incarnation is None or row.queue_offset is None:
            return NOTHING
        calls = self.calls.get(row.incarnation)
        found: Iterable[Finding] = NOTHING
        if calls is None:
            calls = self.calls[row.incarnation] = Calls(row.op_id)
        elif row.op_id != calls.op:
            if all(ended_before(each, row) for each in calls.rows):
                found = self.next_call(calls, row)
            calls.op = row.op_id
            calls.rows.clear()
            calls.given_up.clear()
            calls.failed.clear()
        calls.rows.append(row)
        return found

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.kind is not Kind.DEAD_LETTER or row.incarnation is None or row.queue_offset is None:
            return NOTHING
        calls = self.calls.get(row.incarnation)
        if calls is None:
            calls = self.calls[row.incarnation] = Calls(-1)  # a slice that begins here
        if calls.rows and not ended_before(calls.rows[-1], row):
            return NOTHING
        if row.outcome is Outcome.OK:
            calls.given_up.add(row.queue_offset)
            calls.failed.pop(row.queue_offset, None)
        else:
            calls.failed[row.queue_offset] = row
        return NOTHING
