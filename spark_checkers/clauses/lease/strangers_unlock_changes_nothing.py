"""LSE-8 over columns: lock and unlock rows are few, so a machine per lane goes through them."""

from __future__ import annotations

from spark_checkers.grants import Grants
from spark_checkers.lanes import OP_COLUMNS, LaneItems, Machine, Op, ended_before, machine_kernel
from spark_checkers.rows import NO_TEXT, Findings
from spark_checkers.twin import Twin
from specs.vocabulary import Kind, Outcome


class Lane(Machine):
    """The grants that certainly live, and for each owner the last unlock by somebody else."""

    __slots__ = ("grants", "strangers")

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
