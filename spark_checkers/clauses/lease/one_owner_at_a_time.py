"""LSE-1 over columns: lock and unlock rows are few, so a machine per lane goes through them."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import STRANGER, Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.grants import Grants
from specs.facts.lanes import OP_COLUMNS, LaneItems, Machine, Op, machine_kernel
from specs.facts.segments import NO_TEXT
from specs.vocabulary import Kind, Outcome


class Lane(Machine):
    """The grants that certainly live."""

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.grants = Grants(self)

    def begins(self, op: Op) -> None:
        if op.kind is Kind.UNLOCK:
            self.grants.unlock_begins(op)

    def ends(self, op: Op) -> None:
        if op.kind is not Kind.LOCK or op.client == NO_TEXT:
            return
        for grant in self.grants.contested_by(op):
            self.stakes += 1
            if op.outcome is Outcome.OK:
                clients, released = {grant.client, op.client}, self.grants.unlocks
                never = clients.isdisjoint(released.until) and clients.isdisjoint(released.waiting)
                self.found(grant, op, certain=self.context.tells(Kind.FAULT, Kind.PAUSE) or never)
                self.grants.over(grant)
        self.grants.lock_ends(op)


TWIN = Twin("LSE-1", OP_COLUMNS, machine_kernel(Lane, (Kind.LOCK, Kind.UNLOCK), lease=True))
find = TWIN.find


# ---- what breaks the clause, planted


def second_owner(trace: Trace) -> Changes:
    for lock in planting.held(trace):
        yield partial(
            lambda a: trace.with_more(
                [planting.lock(trace, a, 1, STRANGER, Outcome.OK)], [a.seq_begin]
            ),
            lock,
        )


def unanswered_lock(trace: Trace) -> Changes:
    for lock in planting.held(trace):
        yield partial(
            lambda a: trace.with_more(
                [planting.lock(trace, a, 1, STRANGER, Outcome.UNKNOWN)], [a.seq_begin]
            ),
            lock,
        )


DEFECTS = (Mutant("second-owner", "LSE-1", "a lane is granted to a second client", second_owner),)

LOOKALIKES = (
    Mutant("unanswered-lock", None, "a second client asks and is not answered", unanswered_lock),
)
