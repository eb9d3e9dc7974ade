"""Clients that know the same members and the same queues share them out in the same way.

They use both lists in the same order, whatever language they are written in: a client that sorts otherwise takes
other places of the same lists. And a client that sees the same once more takes the same once more. Compared are the
shares that each client computed last for a topic.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import CLUSTERING
from specs.clauses.shares import Latest, Share, others, put, share_of
from specs.clauses.words import at, who
from specs.history.row import Row
from specs.plan.traits import Stake, Trait
from specs.vocabulary import Key, Kind, Party

ID = "ASG-4"
TITLE = "same view, same result"
STATEMENT = "Clients that know the same members and queues share them out in the same order, each time alike."
PARTY = Party.CLIENT
KEY = Key.GROUP
PREMISE = (CLUSTERING,)
SOURCES = ("docs/sources.md#assignment",)
STAKES = (Stake(Trait.MEMBER_CHANGE, brings=1),)
KINDS = frozenset({Kind.ASSIGN})
NEEDS = frozenset({Kind.ASSIGN})


@dataclass(frozen=True, slots=True)
class SharedOtherwise(Finding):
    first: Row
    second: Row


def knows_the_same(one: Share, other: Share) -> bool:
    return sorted(one.members) == sorted(other.members) and sorted(one.queues) == sorted(
        other.queues
    )


class GroupJudge(Judge):
    """Remembers what each client of the group saw and took last."""

    __slots__ = ("latest",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.latest: Latest = {}

    def begins(self, row: Row) -> Iterable[Finding]:
        share = share_of(row)
        if share is None:
            return NOTHING
        before = self.latest.get(row.topic, {}).get(row.client_id)
        alike = [other for other in others(self.latest, share) if knows_the_same(share, other)]
        put(self.latest, share)
        found: list[Finding] = [
            SharedOtherwise(other.row, row) for other in alike if other.row.view != row.view
        ]
        again = before is not None and before.row.view == row.view
        if before is not None and again and before.taken != share.taken:
            found.append(SharedOtherwise(before.row, row))
        self.opportunities += len(alike) + again
        return found


judge = GroupJudge


def explain(found: SharedOtherwise) -> str:
    first, second = found.first, found.second
    if first.client_id == second.client_id:
        return (
            f"{who(second)} took {second.detail or 'nothing'} of {second.topic} at {at(second)}, and had taken "
            f"{first.detail or 'nothing'} at {at(first)} with the same view ({first.view})"
        )
    return (
        f"{who(second)} shared out {second.topic} at {at(second)} as {second.view}, and {who(first)} at {at(first)} as "
        f"{first.view}: the same, in another order"
    )
