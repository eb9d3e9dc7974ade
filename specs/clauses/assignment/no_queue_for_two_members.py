"""Of the clients that shared the same queues out among the same members, no two took one queue.

Compared are the shares that each client computed last, unless it has left or died since, where both saw the same
members and the same queues, each list in the same order; clients that see the group or the topic differently for a
while may overlap, and the lease keeps that safe. A share is a function of what was seen, so it does not matter when the
two computed it. Not claimed for a fixed list, which asks nobody.
"""

import numpy as np

from specs.clauses.premises import CLUSTERING, DEALT
from specs.clauses.terms import Finding, Findings, Row, Rows, at, who
from specs.facts.shares import GONE_BY, SHARE_COLUMNS, each_share
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
EXCUSED_BY = GONE_BY
COLUMNS = SHARE_COLUMNS


class TakenTwice(Finding):
    first: Row
    second: Row
    queue: str


def judge(rows: Rows, findings: Findings) -> None:
    stakes: list[int] = []
    for share, before in each_share(rows):
        for other in before.values():
            if other.view != share.view or other.client == share.client:
                continue
            stakes.append(share.place)
            both = next((queue for queue in share.taken if queue in other.taken), None)
            if both is not None:
                roles = {"first": other.place, "second": share.place}
                findings.shown(TakenTwice, roles, {"queue": both})
    findings.at_stake(np.asarray(stakes, np.int64))


def explain(found: TakenTwice) -> str:
    first, second = found.first, found.second
    return (
        f"{who(second)} took queue {found.queue} of {second.topic} at {at(second)}, which {who(first)} had taken at "
        f"{at(first)}, though both had shared out the same queues among the same members ({first.view})"
    )
