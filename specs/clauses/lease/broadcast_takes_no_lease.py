"""A client that consumes every queue for itself asks for no lease.

A lease says who of a group may work on a queue; where everybody works on every queue it keeps all members but one
from their messages. Decided for clients that were seen to begin with the lane: whoever else asks for it (an
operator, a stranger) is none of the group's members.
"""

from __future__ import annotations

from dataclasses import dataclass

from specs.clauses.judging import Finding
from specs.clauses.premises import BROADCASTING
from specs.clauses.words import at, who
from specs.facts.findings import Findings
from specs.facts.lanes import OP_COLUMNS, LaneItems, Machine, Op, each_lane
from specs.facts.segments import NO_TEXT
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Party

ID = "LSE-12"
TITLE = "broadcast takes no lease"
STATEMENT = "A client that consumes every queue for itself asks for no lease."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (BROADCASTING,)
SOURCES = ("docs/sources.md#broadcast",)
KINDS = frozenset({Kind.ADD, Kind.LOCK})
NEEDS = frozenset({Kind.ADD, Kind.LOCK})
COLUMNS = OP_COLUMNS


@dataclass(frozen=True, slots=True)
class LeaseAsked(Finding):
    add: Row
    lock: Row


class Lane(Machine):
    """Each client's first add, and its first lock where that came earlier."""

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.adds: dict[int, Op] = {}
        self.locks: dict[int, Op] = {}

    def begins(self, op: Op) -> None:
        if op.client == NO_TEXT:
            return
        add = self.adds.get(op.client)
        if op.kind is Kind.ADD:
            self.stakes += 1
            if add is None:
                self.adds[op.client] = op
                if op.client in self.locks:
                    self.broken(LeaseAsked, add=op, lock=self.locks.pop(op.client))
        elif add is not None:
            self.broken(LeaseAsked, add=add, lock=op)
        else:
            self.locks.setdefault(op.client, op)


judge = each_lane(Lane, KINDS, lease=False)


def explain(found: LeaseAsked) -> str:
    add, lock = found.add, found.lock
    return (
        f"{who(lock)} asked for the lease of {lock.lane} at {at(lock)}, though in broadcasting it shares the lane, "
        f"which it added at {at(add)}, with nobody"
    )
