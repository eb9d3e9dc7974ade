"""LSE-12 over columns: adds and locks are few, so a machine per lane goes through them."""

from __future__ import annotations

from functools import partial
from typing import Any

from spark_checkers.planting import BROADCASTING, STRANGER, Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.lanes import OP_COLUMNS, LaneItems, Machine, Op, machine_kernel
from specs.facts.segments import NO_TEXT
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome


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
                    self.found(self.locks.pop(op.client), op)
        elif add is not None:
            self.found(add, op)
        else:
            self.locks.setdefault(op.client, op)


TWIN = Twin("LSE-12", OP_COLUMNS, machine_kernel(Lane, (Kind.ADD, Kind.LOCK), lease=False))
find = TWIN.find


# ---- what breaks the clause, planted


def lease_in_broadcasting(trace: Trace) -> Changes:
    for add in trace.of(Kind.ADD):
        yield partial(lambda a: trace.with_more([_asks(trace, a, a.client_id)], [a.seq_begin]), add)


def strangers_lease_in_broadcasting(trace: Trace) -> Changes:
    for add in trace.of(Kind.ADD):
        yield partial(lambda a: trace.with_more([_asks(trace, a, STRANGER)], [a.seq_begin]), add)


def _asks(trace: Trace, add: Row, client: str | None) -> Row:
    fields: dict[str, Any] = {
        "client_id": client,
        "incarnation": None,
        "value": None,
        "outcome": Outcome.REFUSED,
    }
    return trace.another(add, add, 1, kind=Kind.LOCK, **fields)


DEFECTS = (
    Mutant(
        "lease-in-broadcasting",
        "LSE-12",
        "a broadcast client asks for a lease",
        lease_in_broadcasting,
        generated=False,
        consumed=BROADCASTING,
    ),
)

LOOKALIKES = (
    Mutant(
        "stranger-leases-in-broadcasting",
        None,
        "a stranger asks for a lease",
        strangers_lease_in_broadcasting,
        generated=False,
        consumed=BROADCASTING,
    ),
)
