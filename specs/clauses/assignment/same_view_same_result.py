"""Clients that know the same members and the same queues share them out in the same way.

They use both lists in the same order, whatever language they are written in: a client that sorts otherwise takes
other places of the same lists. And a client that knows the same once more takes the same once more, in whatever order
it uses the lists. Compared are the shares that each client computed last for a topic, unless it has left or died since.
"""

import numpy as np

from specs.clauses.premises import CLUSTERING
from specs.clauses.terms import Finding, Findings, Row, Rows, at, who
from specs.facts.shares import GONE_BY, SHARE_COLUMNS, Share, each_share
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
EXCUSED_BY = GONE_BY
COLUMNS = SHARE_COLUMNS


class SharedOtherwise(Finding):
    first: Row
    second: Row


def _known(share: Share) -> tuple[list[str], list[str]]:
    return sorted(share.members), sorted(share.queues)


def judge(rows: Rows, findings: Findings) -> None:
    stakes: list[int] = []
    for share, before in each_share(rows):
        for client, other in before.items():
            own = client == share.client
            if _known(other) == _known(share):
                stakes.append(share.place)
                if other.taken != share.taken if own else other.view != share.view:
                    roles = {"first": other.place, "second": share.place}
                    findings.shown(SharedOtherwise, roles)
    findings.at_stake(np.asarray(stakes, np.int64))


def explain(found: SharedOtherwise) -> str:
    first, second = found.first, found.second
    if first.client_id == second.client_id:
        return (
            f"{who(second)} took {second.detail or 'nothing'} of {second.topic} at {at(second)}, and had taken "
            f"{first.detail or 'nothing'} at {at(first)} of the same members and queues ({first.view})"
        )
    return (
        f"{who(second)} shared out {second.topic} at {at(second)} as {second.view}, and {who(first)} at {at(first)} as "
        f"{first.view}: the same, in another order"
    )
