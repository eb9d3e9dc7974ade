"""ORD-5 over columns: a stretch at or above its incarnation's start is taken whole."""

from __future__ import annotations

from functools import partial

from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.lanes import (
    OP_COLUMNS,
    LaneItems,
    Machine,
    Op,
    Stretch,
    ends_as,
    machine_kernel,
)
from specs.facts.segments import NO_TEXT, NONE
from specs.vocabulary import Kind, Outcome


def _goes_back(pull: Op) -> bool:
    return NONE not in (pull.value, pull.offset) and pull.value < pull.offset


class Lane(Machine):
    """Where each incarnation begins, which of them have delivered yet, and which were led elsewhere."""

    ENDS = ends_as([Kind.FETCH_OFFSET])

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.start: dict[int, Op] = {}
        self.begun: set[int] = set()
        self.void: set[int] = set()
        self.clients: dict[int, int] = {}  # of each incarnation

    def takes(self, stretch: Stretch) -> bool:
        first = stretch.first
        if any(_goes_back(pull) for pull in self.inside):
            return False
        start = self.start.get(first.incarnation)
        if start is not None:
            if first.offset < start.value:
                return False
            self.stakes += stretch.rows
        self.begun.add(first.incarnation)
        self.clients.setdefault(first.incarnation, first.client)
        return True

    def begins(self, op: Op) -> None:
        if op.kind is Kind.RESET:
            self.void.update(self.start, self.begun)
            self.start.clear()
        elif op.kind in (Kind.COMMIT, Kind.PULL):
            if _goes_back(op) if op.kind is Kind.PULL else op.corrected:
                self._led_elsewhere(op)
        elif op.incarnation != NO_TEXT:
            self.clients.setdefault(op.incarnation, op.client)
            self._of_an_incarnation(op)

    def _led_elsewhere(self, op: Op) -> None:
        """The incarnation was, or any that the client may have."""
        led = {op.incarnation}
        if op.incarnation == NO_TEXT:
            led = {name for name, each in self.clients.items() if each in (NO_TEXT, op.client)}
        self.void |= led
        for name in led & self.start.keys():
            del self.start[name]

    def _of_an_incarnation(self, op: Op) -> None:
        if op.kind is Kind.ADD:
            self.clients[op.incarnation] = op.client
            self.begun.discard(op.incarnation)
            self.void.discard(op.incarnation)
            self.start.pop(op.incarnation, None)
            if op.value != NONE:
                self.start[op.incarnation] = op
        elif op.kind is Kind.DELIVER and op.offset != NONE:
            self._deliver(op)

    def _deliver(self, op: Op) -> None:
        self.begun.add(op.incarnation)
        start = self.start.get(op.incarnation)
        if start is not None:
            self.stakes += 1
            if op.offset < start.value:
                self.found(start, op)

    def ends(self, op: Op) -> None:
        name = op.incarnation
        if op.kind is not Kind.FETCH_OFFSET or name == NO_TEXT or name in self.void:
            return
        if op.outcome is Outcome.OK and op.value >= 0:
            start = self.start.get(name)
            if name not in self.begun or (start is not None and op.value < start.value):
                self.start[name] = op
        elif op.outcome is Outcome.REFUSED and op.value == -1:
            self.start.pop(name, None)


_KINDS = (Kind.DELIVER, Kind.ADD, Kind.FETCH_OFFSET, Kind.RESET, Kind.COMMIT)
TWIN = Twin("ORD-5", OP_COLUMNS, machine_kernel(Lane, _KINDS, lease=False, asides=(Kind.PULL,)))
find = TWIN.find


# ---- what breaks the clause, planted


def delivered_below_start(trace: Trace) -> Changes:
    for rows in trace.works:
        add = next(row for row in rows if row.kind is Kind.ADD)
        calls = [row for row in rows if row.kind is Kind.DELIVER]
        said = [row for row in rows if row.kind is Kind.FETCH_OFFSET or row.detail == "corrected"]
        if calls and add.value and all(row.value == add.value for row in said):
            below = {
                "queue_offset": add.value - 1,
                "message_id": f"{calls[0].message_id}-below",
                "key_seq": None,
            }
            about = (add.seq_begin, calls[0].seq_begin)
            yield partial(trace.changed, {calls[0].seq_begin: below}, about)


DEFECTS = (
    Mutant(
        "below-the-start",
        "ORD-5",
        "a new owner begins one message too early",
        delivered_below_start,
    ),
)
