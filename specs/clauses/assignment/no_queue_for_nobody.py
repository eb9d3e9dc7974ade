"""Where all members shared the same queues out among themselves, every queue was taken by somebody.

Decided when each member's last share was computed from the same view: the same members and queues, each list in the
same order. While one of them still sees another group or topic, queues may wait for it. Views of more than nine
members are passed over: a witness is short. So are views that list a member twice: a client that came again under its
id while the broker still held the connection of its last process; one share is then for a process that is gone, until
the broker has noticed. Not claimed for a fixed list or for listed machine rooms, which leave
queues out on purpose.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import CLUSTERING, DEALT_TO_THE_LAST
from specs.clauses.shares import Latest, put, share_of
from specs.clauses.words import at, who
from specs.history.row import Row
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

MEMBERS_MAX = 9


@dataclass(frozen=True, slots=True)
class TakenByNobody(Finding):
    shares: tuple[Row, ...]
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
        put(self.latest, share)
        members = set(share.members)
        if (
            row.client_id not in members
            or len(members) > MEMBERS_MAX
            or len(members) < len(share.members)
        ):
            return NOTHING
        known = self.latest[row.topic]
        shares = [
            known[member]
            for member in sorted(members)
            if member in known and known[member].row.view == row.view
        ]
        if len(shares) < len(members):
            return NOTHING
        self.opportunities += 1
        taken = {queue for each in shares for queue in each.taken}
        left = next((queue for queue in share.queues if queue not in taken), None)
        return (
            NOTHING if left is None else (TakenByNobody(tuple(each.row for each in shares), left),)
        )


judge = GroupJudge


def explain(found: TakenByNobody) -> str:
    last = found.rows[-1]
    return (
        f"when {who(last)} had computed its share at {at(last)}, all {len(found.shares)} members had shared out the "
        f"same queues ({last.view}), and nobody had taken queue {found.queue} of {last.topic}"
    )
