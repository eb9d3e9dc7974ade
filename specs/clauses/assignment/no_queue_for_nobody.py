"""Where all members shared the same queues out among themselves, every queue was taken by somebody.

Decided when each member's last share was computed from the same view: the same members and queues, each list in the
same order. The share of a client that has left or died since is nobody's. While one of them still sees another group or
topic, queues may wait for it. Views that list a member twice are passed over: a client that came again under its id
while the broker still held the connection of its last process; one share is then for a process that is gone, until the
broker has noticed. Not claimed for a fixed list or for listed machine rooms, which leave queues out on purpose.
"""

import numpy as np

from specs.clauses.premises import CLUSTERING, DEALT_TO_THE_LAST
from specs.clauses.terms import Finding, Findings, Row, Rows, at, who
from specs.facts.shares import GONE_BY, SHARE_COLUMNS, each_share
from specs.plan.traits import Stake, Trait
from specs.vocabulary import Key, Kind, Party

ID = "ASG-2"
TITLE = "no queue for nobody"
STATEMENT = "When all members see the same members and queues, every queue is taken by one of them."
PARTY = Party.CLIENT
KEY = Key.GROUP
PREMISE = (CLUSTERING, DEALT_TO_THE_LAST)
SOURCES = ("docs/sources.md#assignment",)
STAKES = (Stake(Trait.MEMBER_CHANGE, brings=1),)
KINDS = frozenset({Kind.ASSIGN})
NEEDS = frozenset({Kind.ASSIGN})
EXCUSED_BY = GONE_BY
COLUMNS = SHARE_COLUMNS


class TakenByNobody(Finding):
    shares: tuple[Row, ...]
    queue: str


def judge(rows: Rows, findings: Findings) -> None:
    stakes: list[int] = []
    for share, before in each_share(rows):
        members = set(share.members)
        if share.member not in members or len(members) < len(share.members):
            continue
        party = [
            each
            for each in (before | {share.client: share}).values()
            if each.view == share.view and each.member in members
        ]
        if len(party) < len(members):
            continue
        stakes.append(share.place)
        taken = {queue for each in party for queue in each.taken}
        left = next((queue for queue in share.queues if queue not in taken), None)
        if left is not None:
            places = sorted(each.place for each in party)
            findings.shown(TakenByNobody, {"shares": places}, {"queue": left})
    findings.at_stake(np.asarray(stakes, np.int64))


def explain(found: TakenByNobody) -> str:
    last = found.rows[-1]
    return (
        f"when {who(last)} had computed its share at {at(last)}, all {len(found.shares)} members had shared out the "
        f"same queues ({last.view}), and nobody had taken queue {found.queue} of {last.topic}"
    )
