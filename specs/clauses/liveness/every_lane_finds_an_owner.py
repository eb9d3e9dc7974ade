"""When all is healed and quiet, no lane with messages left is without an owner while a member of its group lives.

Judged at a settled drain, of lanes that somebody had and nobody has: the last incarnation was dropped, its client left
or died. If the drain finds a message at or after that incarnation's start that nobody of the group has finished, and
a member of the group lives, then the lane should have found its way to a member: quiet means that nothing happened
for longer than the handover bound, which is until a dead member is forgotten, a rebalance, a lease that runs out, and
a pull. What *settled* means, and what else is left out, is said in `specs.clauses.settled`. How long a handover may
take where the old owner's death is recorded is the affair of LSE-5.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.base import (
    AUTO_MODE,
    NO_FILTER,
    NO_RESET,
    ORDERLY,
    SETTLED,
    Finding,
    Premise,
    at,
    who,
)
from specs.clauses.progress import Incarnation
from specs.clauses.settled import SETTLED_KINDS, SettledJudge, wants
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Party

ID = "LIV-2"
TITLE = "every lane finds an owner"
STATEMENT = (
    "When faults are healed, lanes progress within the handover bound: none with messages left stays without an owner."
)
PARTY = Party.PAIR
KEY = Key.QUEUE
PREMISE = (
    ORDERLY,
    SETTLED,
    NO_RESET,
    NO_FILTER,
    AUTO_MODE,
    Premise("one subscription", "every member of a group subscribes to the same topics (MET-5)"),
)
SOURCES = ("docs/sources.md#membership", "docs/sources.md#client-leases")
KINDS = SETTLED_KINDS
NEEDS = frozenset({Kind.DELIVER, Kind.READ})

__all__ = ["wants"]


@dataclass(frozen=True, slots=True)
class Orphaned(Finding):
    """end: why the last incarnation is over. join: the start of a member that lives."""

    add: Row
    start: Row
    end: Row
    join: Row
    read: Row
    marker: Row


class QueueJudge(SettledJudge):
    """At stake where the lane had to find another owner, now or before, and the group lives."""

    __slots__ = ()

    def is_at_stake(self, group: str, last: Incarnation, handed_over: bool) -> bool:
        return (handed_over or not self.lives(last)) and self.context.newest_member(group) is not None

    def owes(self, group: str, last: Incarnation, read: Row, marker: Row) -> Iterable[Finding]:
        if self.lives(last):
            return
        add, start, join = last.add, last.start_row, self.context.newest_member(group)
        end = last.dropped
        if end is None and add is not None:
            client = add.client_id or ""
            leave = self.context.is_leaving(client, add.group)
            end = self.context.last_death.get(client) if self.has_died(last) else leave
        if add is not None and start is not None and end is not None and join is not None:
            yield Orphaned(add, start, end, join, read, marker)


judge = QueueJudge


def explain(found: Orphaned) -> str:
    add, end, read, marker = found.add, found.end, found.read, found.marker
    over = {Kind.DROP: "dropped it", Kind.CRASH: "died", Kind.LEAVE: "left"}[end.kind]
    return (
        f"nobody of {add.group} has {add.lane} since {who(add)} {over} at {at(end)}, although {who(found.join)} lives, "
        f"message {read.message_id} at offset {read.queue_offset} is not finished, and all was healed and quiet by "
        f"{at(marker)}"
    )
