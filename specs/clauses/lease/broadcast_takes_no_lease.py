"""A client that consumes every queue for itself asks for no lease.

A lease says who of a group may work on a queue; where everybody works on every queue it keeps all members but one
from their messages. Decided for clients that were seen to begin with the lane: whoever else asks for it (an
operator, a stranger) is none of the group's members.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import BROADCASTING
from specs.clauses.words import at, who
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


@dataclass(frozen=True, slots=True)
class LeaseAsked(Finding):
    add: Row
    lock: Row


class LaneJudge(Judge):
    """Remembers each client's first add, or its first lock until then."""

    __slots__ = ("adds", "locks")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.adds: dict[str, Row] = {}
        self.locks: dict[str, Row] = {}

    def begins(self, row: Row) -> Iterable[Finding]:
        client = row.client_id
        if client is None:
            return NOTHING
        if row.kind is Kind.LOCK:
            add = self.adds.get(client)
            if add is not None:
                return (LeaseAsked(add, row),)
            self.locks.setdefault(client, row)
            return NOTHING
        self.opportunities += 1
        if client in self.adds:
            return NOTHING
        self.adds[client] = row
        lock = self.locks.pop(client, None)
        return NOTHING if lock is None else (LeaseAsked(row, lock),)


judge = LaneJudge


def explain(found: LeaseAsked) -> str:
    add, lock = found.add, found.lock
    return (
        f"{who(lock)} asked for the lease of {lock.lane} at {at(lock)}, though in broadcasting it shares the lane, "
        f"which it added at {at(add)}, with nobody"
    )
