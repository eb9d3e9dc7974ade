"""An incarnation never delivers below the offset that it fetched at its start.

The start is the value of the ADD, or, where none was seen before, that of a look-up of the stored offset that names the
incarnation. A look-up that the incarnation makes afterwards sets it anew while nothing has been delivered, and later
only lowers it: who looks up again may go back that far. An answer that nothing is stored leaves the start to the
client, and the clause stays silent then. Two things may take a client below its start: a reset by an operator, and a
broker's word that the offset is out of range (a commit marked `corrected`, or a pull whose answer names a lower offset
than was asked for, from its begin on; one that names no incarnation speaks for its client). An incarnation that met
one of them is judged no more, until it is added anew.
"""

from __future__ import annotations

from dataclasses import dataclass

from specs.clauses.judging import Finding
from specs.clauses.premises import NO_RESET
from specs.clauses.words import at, who
from specs.facts.findings import Findings
from specs.facts.lanes import (
    OP_COLUMNS,
    LaneItems,
    Machine,
    Op,
    Stretch,
    each_lane,
    ends_as,
)
from specs.facts.segments import NO_TEXT, NONE
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "ORD-5"
TITLE = "nothing below the start"
STATEMENT = (
    "An incarnation never delivers below the offset that it fetched at its start, save a broker's correction or a "
    "reset."
)
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (NO_RESET,)
SOURCES = ("docs/sources.md#start-matrix", "docs/sources.md#offsets")
KINDS = frozenset({Kind.DELIVER, Kind.ADD, Kind.FETCH_OFFSET, Kind.RESET, Kind.COMMIT, Kind.PULL})
NEEDS = frozenset({Kind.ADD, Kind.DELIVER})
LOOKS_BACK = True
COLUMNS = OP_COLUMNS


@dataclass(frozen=True, slots=True)
class BelowTheStart(Finding):
    start: Row
    delivered: Row


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
                self.broken(BelowTheStart, start=start, delivered=op)

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


judge = each_lane(Lane, KINDS, lease=False, asides=(Kind.PULL,))


def explain(found: BelowTheStart) -> str:
    start, delivered = found.start, found.delivered
    return (
        f"{who(delivered)} delivered offset {delivered.queue_offset} of {delivered.lane} at {at(delivered)}, although "
        f"it had begun the lane at {start.value} (seen at {at(start)})"
    )
