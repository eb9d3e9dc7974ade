"""A message of a batch that was given up, and whose dead letter was acknowledged, is not given up a second time.

Where a consumer takes several messages per call, some of a batch may have used up their retries while others have
not. The exhausted ones are given up; the batch comes again because of the others, and with it, in most clients,
those that were given up. Then no second dead letter may follow: whoever reads the dead letters would find one
message several times. Claimed within one incarnation (another may not know), in auto mode (in manual mode a ROLLBACK
takes back what was given up as well), and until the lane is reset. A dead letter that was refused, or whose answer
never came, is sent again, and rightly.
Says nothing of whether the message is delivered once more with the rest of its batch. For one message per call
DLQ-2 and DLQ-3 say more.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.base import (
    AUTO_MODE,
    BATCHES,
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

ID = "DLQ-10"
TITLE = "a message of a batch is given up once"
STATEMENT = (
    "A message whose dead letter was acknowledged is not given up again by the same incarnation, even where the rest "
    "of its batch is tried again."
)
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (IN_PLACE, BATCHES, AUTO_MODE, NO_RESET)
SOURCES = ("docs/sources.md#dead-letters",)
KINDS = frozenset({Kind.DELIVER, Kind.DEAD_LETTER, Kind.ADD, Kind.RESET})
NEEDS = frozenset({Kind.DEAD_LETTER})


def wants(row: Row) -> bool:
    """Of deliveries only manual ones."""
    return row.kind is not Kind.DELIVER or is_manual(row)


@dataclass(frozen=True, slots=True)
class GivenUpAgain(Finding):
    first: Row
    second: Row


class _Incarnation:
    """manual: has it made a call in manual mode? given_up: offset → its first acknowledged dead letter."""

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

    def begins(self, row: Row) -> Iterable[Finding]:
        name = row.incarnation
        if row.kind is Kind.RESET:
            self.incarnations.clear()
        elif name is None:
            return NOTHING
        elif row.kind is Kind.ADD:
            self.incarnations.pop(name, None)
        elif row.kind is Kind.DEAD_LETTER and row.queue_offset is not None and name in self.incarnations:
            mine = self.incarnations[name]
            first = mine.given_up.get(row.queue_offset)
            if first is not None and not mine.manual and not is_manual(row):
                return (GivenUpAgain(first, row),)
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.kind not in (Kind.DELIVER, Kind.DEAD_LETTER) or row.incarnation is None or row.queue_offset is None:
            return NOTHING
        mine = self.incarnations.get(row.incarnation)
        if mine is None:
            mine = self.incarnations[row.incarnation] = _Incarnation()
        if is_manual(row):
            mine.manual = True
        elif row.kind is Kind.DEAD_LETTER and row.outcome is Outcome.OK and not mine.manual:
            mine.given_up.setdefault(row.queue_offset, row)
            self.opportunities += 1
        return NOTHING


judge = LaneJudge


def explain(found: GivenUpAgain) -> str:
    first, second = found.first, found.second
    return (
        f"{who(second)} gave up offset {second.queue_offset} of {second.lane} again at {at(second)}, although the dead "
        f"letter that it had sent at {at(first)} was acknowledged"
    )
