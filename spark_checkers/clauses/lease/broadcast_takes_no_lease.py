"""LSE-12 over columns: adds and locks are few, so a machine per lane goes through them."""

from __future__ import annotations

from spark_checkers.lanes import OP_COLUMNS, LaneItems, Machine, Op, machine_kernel
from spark_checkers.rows import NO_TEXT, Findings
from spark_checkers.twin import Twin
from specs.vocabulary import Kind


class Lane(Machine):
    """Each client's first add, and its first lock where that came earlier."""

    __slots__ = ("adds", "locks")

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
                    self.found(self.locks.pop(op.client), op)
        elif add is not None:
            self.found(add, op)
        else:
            self.locks.setdefault(op.client, op)


TWIN = Twin("LSE-12", OP_COLUMNS, machine_kernel(Lane, (Kind.ADD, Kind.LOCK), lease=False))
find = TWIN.find
