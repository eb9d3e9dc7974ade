"""Within an incarnation, a commit that begins after another has ended does not carry a smaller value.

Commits that overlap in time may arrive in any order and are not compared. A reset, a broker's correction
(`detail=corrected`) and a new look-up of the stored offset (which the client adopts even when it is lower) clear
what is remembered. Says nothing about another incarnation: it may well start lower.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.base import NO_RESET, NOTHING, Context, Finding, Judge, at, ended_before, who
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Party

ID = "CMT-4"
TITLE = "commits never go back"
STATEMENT = "Within an incarnation, commits that do not overlap in time never go back, without a reset."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (NO_RESET,)
SOURCES = ("docs/sources.md#offsets",)
KINDS = frozenset({Kind.COMMIT, Kind.ADD, Kind.RESET, Kind.FETCH_OFFSET})
NEEDS = frozenset({Kind.COMMIT})

CORRECTED = "corrected"


@dataclass(frozen=True, slots=True)
class CommitWentBack(Finding):
    first: Row
    second: Row


class LaneJudge(Judge):
    """Remembers, for each incarnation, the highest commit that has ended."""

    __slots__ = ("highest",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.highest: dict[str, Row] = {}

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.RESET:
            self.highest.clear()
            return NOTHING
        if row.incarnation is None:
            return NOTHING
        if row.kind is Kind.ADD or row.detail == CORRECTED:
            self.highest.pop(row.incarnation, None)
            return NOTHING
        highest = self.highest.get(row.incarnation)
        if row.kind is not Kind.COMMIT or highest is None or row.value is None or not ended_before(highest, row):
            return NOTHING
        self.opportunities += 1
        return (CommitWentBack(highest, row),) if row.value < (highest.value or 0) else NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.incarnation is None:
            return NOTHING
        if row.kind is Kind.FETCH_OFFSET:
            self.highest.pop(row.incarnation, None)
        elif row.kind is Kind.COMMIT and row.value is not None and row.detail != CORRECTED:
            highest = self.highest.get(row.incarnation)
            if highest is None or row.value > (highest.value or 0):
                self.highest[row.incarnation] = row
        return NOTHING


judge = LaneJudge


def explain(found: CommitWentBack) -> str:
    first, second = found.first, found.second
    return (
        f"{who(second)} committed {second.value} for {second.lane} at {at(second)}, after it had committed "
        f"{first.value} at {at(first)} in the same incarnation"
    )
