"""Once its dead letter was acknowledged, the same incarnation does not deliver a message again.

Claimed where the consumer takes one message per call (a batch that is given up only in part comes again as a
whole) and works in auto mode (in manual mode a ROLLBACK replays what was given up as well). Another incarnation may
deliver it: it may not know. Says nothing once the lane was reset.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.base import (
    AUTO_MODE,
    BATCH_OF_ONE,
    IN_PLACE,
    NO_RESET,
    NOTHING,
    Context,
    Finding,
    Judge,
    at,
    is_manual,
    who,
)
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "DLQ-3"
TITLE = "a given-up message is not delivered again"
STATEMENT = "After its dead letter was acknowledged, a message is not delivered again by the same incarnation."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (IN_PLACE, BATCH_OF_ONE, AUTO_MODE, NO_RESET)
SOURCES = ("docs/sources.md#dead-letters",)
KINDS = frozenset({Kind.DELIVER, Kind.DEAD_LETTER, Kind.ADD, Kind.RESET})
NEEDS = frozenset({Kind.DEAD_LETTER, Kind.DELIVER})


@dataclass(frozen=True, slots=True)
class CameBack(Finding):
    given_up: Row
    again: Row


class _Incarnation:
    """manual: has it made a call in manual mode? given_up: offset → its acknowledged dead letter."""

    __slots__ = ("given_up", "manual")

    def __init__(self) -> None:
        self.given_up: dict[int, Row] = {}
        self.manual = False


class LaneJudge(Judge):
    """Remembers what each incarnation gave up: few messages, one row for each."""

    __slots__ = ("incarnations",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.incarnations: dict[str, _Incarnation] = {}

    def _of(self, row: Row) -> _Incarnation | None:
        if row.incarnation is None or row.queue_offset is None:
            return None
        found = self.incarnations.get(row.incarnation)
        if found is None:
            found = self.incarnations[row.incarnation] = _Incarnation()
        return found

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.RESET:
            self.incarnations.clear()
        elif row.kind is Kind.ADD:
            self.incarnations.pop(row.incarnation or "", None)
        elif row.kind is Kind.DELIVER:
            mine = self._of(row)
            if mine is not None:
                before = mine.given_up.get(row.queue_offset or 0)
                if before is not None and not mine.manual:
                    return (CameBack(before, row),)
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        mine = self._of(row)
        if mine is None:
            return NOTHING
        if is_manual(row):
            mine.manual = True
        elif row.kind is Kind.DEAD_LETTER and row.outcome is Outcome.OK and not mine.manual:
            mine.given_up.setdefault(row.queue_offset or 0, row)
            self.opportunities += 1
        return NOTHING


judge = LaneJudge


def explain(found: CameBack) -> str:
    before, again = found.given_up, found.again
    return (
        f"{who(again)} delivered offset {again.queue_offset} of {again.lane} again at {at(again)}, although the dead "
        f"letter that it had sent at {at(before)} was acknowledged"
    )
