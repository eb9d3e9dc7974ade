"""LSE-8 over columns: lock and unlock rows are few, so a machine per lane goes through them."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import ANOTHER, STRANGER, Changes, Mutant, Planted, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.grants import Grants
from specs.facts.lanes import OP_COLUMNS, LaneItems, Machine, Op, ended_before, machine_kernel
from specs.facts.segments import NO_TEXT
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome


class Lane(Machine):
    """The grants that certainly live, and for each owner the last unlock by somebody else."""

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.grants = Grants(self)
        self.strangers: dict[int, Op] = {}

    def begins(self, op: Op) -> None:
        if op.kind is not Kind.UNLOCK or op.client == NO_TEXT:
            return
        for owner, grant in self.grants.alive.items():
            if owner != op.client and ended_before(grant, op):
                self.strangers[owner] = op
        self.grants.unlock_begins(op)

    def ends(self, op: Op) -> None:
        if op.kind is not Kind.LOCK or op.client == NO_TEXT:
            return
        granted = op.outcome is Outcome.OK
        for grant in self.grants.contested_by(op):
            unlock = self.strangers.get(grant.client)
            if unlock is not None and unlock.begin < op.begin:
                self.stakes += 1
                if granted:
                    self.found(grant, unlock, op)
            if granted:
                self.grants.over(grant)
        if granted:
            self.strangers.pop(op.client, None)
        self.grants.lock_ends(op)


TWIN = Twin("LSE-8", OP_COLUMNS, machine_kernel(Lane, (Kind.LOCK, Kind.UNLOCK), lease=True))
find = TWIN.find


# ---- what breaks the clause, planted


def stranger_unlock(trace: Trace) -> Changes:
    for lock in planting.held(trace):
        yield partial(_freed, trace, lock)


def _freed(trace: Trace, lock: Row) -> Planted:
    unlock = planting.lock(trace, lock, 1, STRANGER, Outcome.OK)._replace(kind=Kind.UNLOCK)
    return trace.with_more(
        [unlock, planting.lock(trace, lock, 2, ANOTHER, Outcome.OK)], [lock.seq_begin]
    )


def stranger_unlocks_in_vain(trace: Trace) -> Changes:
    for lock in planting.held(trace):
        yield partial(
            lambda a: trace.with_more(
                [
                    planting.lock(trace, a, 1, STRANGER, Outcome.OK)._replace(kind=Kind.UNLOCK),
                    planting.lock(trace, a, 2, ANOTHER, Outcome.REFUSED),
                ],
                [a.seq_begin],
            ),
            lock,
        )


DEFECTS = (
    Mutant("stranger-unlock", "LSE-8", "a stranger's unlock frees the lane", stranger_unlock),
)

LOOKALIKES = (
    Mutant(
        "stranger-in-vain",
        None,
        "a stranger unlocks, and the next one is refused",
        stranger_unlocks_in_vain,
    ),
)
