"""Of the clients that shared the same queues out among the same members, no two took one queue.

Compared are the shares that each client computed last, where both saw the same members and the same queues, each
list in the same order; clients that see the group or the topic differently for a while may overlap, and the lease
keeps that safe. A share is a function of what was seen, so it does not matter when the two computed it. Not claimed
for a fixed list, which asks nobody.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import CLUSTERING, DEALT
from specs.clauses.shares import Latest, others, put, share_of
from specs.clauses.words import at, who
from specs.history.row import Row
from specs.plan.traits import Stake, Trait
from specs.vocabulary import Key, Kind, Party

ID = "ASG-1"
TITLE = "no queue for two members"
STATEMENT = "No two members that see the same members and queues take the same queue."
PARTY = Party.CLIENT
KEY = Key.GROUP
PREMISE = (CLUSTERING, DEALT)
SOURCES = ("docs/sources.md#assignment",)
STAKES = (Stake(Trait.MEMBER_CHANGE, brings=1),)
KINDS = frozenset({Kind.ASSIGN})
NEEDS = frozenset({Kind.ASSIGN})


@dataclass(frozen=True, slots=True)
class TakenTwice(Finding):
    first: Row
    second: Row
    queue: str


class GroupJudge(Judge):
    """Remembers what each client of the group took last."""

    __slots__ = ("latest",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.latest: Latest = {}

    def begins(self, row: Row) -> Iterable[Finding]:
        share = share_of(row)
        if share is None:
            return NOTHING
        alike = [other for other in others(self.latest, share) if other.row.view == row.view]
        put(self.latest, share)
        self.opportunities += len(alike)
        found: list[Finding] = []
        for other in alike:
            both = next((queue for queue in share.taken if queue in other.taken), None)
            if both is not None:
                found.append(TakenTwice(other.row, row, both))
        return found


judge = GroupJudge


def explain(found: TakenTwice) -> str:
    first, second = found.first, found.second
    return (
        f"{who(second)} took queue {found.queue} of {second.topic} at {at(second)}, which {who(first)} had taken at "
        f"{at(first)}, though both had shared out the same queues among the same members ({first.view})"
    )
