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

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import NO_RESET
from specs.clauses.words import at, who
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


def wants(row: Row) -> bool:
    """Of commits only corrections, of pulls only those that were sent elsewhere."""
    if row.kind is Kind.COMMIT:
        return row.detail == "corrected"
    return row.kind is not Kind.PULL or goes_back(row)


def goes_back(row: Row) -> bool:
    """A pull whose answer names a lower offset than was asked for."""
    return row.value is not None and row.queue_offset is not None and row.value < row.queue_offset


@dataclass(frozen=True, slots=True)
class BelowTheStart(Finding):
    start: Row
    delivered: Row


class LaneJudge(Judge):
    """Remembers, for each incarnation, the row that says where it begins, and whether it has delivered yet."""

    __slots__ = ("begun", "clients", "start", "void")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.start: dict[str, Row] = {}
        self.begun: set[str] = set()
        self.clients: dict[
            str, str | None
        ] = {}  # whose each incarnation is, as far as its ADD says
        self.void: set[str] = set()  # they were led elsewhere

    def begins(self, row: Row) -> Iterable[Finding]:
        name = row.incarnation
        if row.kind is Kind.RESET:
            self.void.update(self.start, self.begun)
            self.start.clear()
            return NOTHING
        if row.kind in (Kind.COMMIT, Kind.PULL):  # `wants` lets only corrections through
            self._corrected(row)
            return NOTHING
        if name is None:
            return NOTHING
        self.clients.setdefault(name, row.client_id)
        if row.kind is Kind.ADD:
            self.clients[name] = row.client_id
            self.begun.discard(name)
            self.void.discard(name)
            self.start.pop(name, None)
            if row.value is not None:
                self.start[name] = row
        elif row.kind is Kind.DELIVER and row.queue_offset is not None:
            self.begun.add(name)
            start = self.start.get(name)
            if start is not None and start.value is not None:
                self.opportunities += 1
                if row.queue_offset < start.value:
                    return (BelowTheStart(start, row),)
        return NOTHING

    def _corrected(self, row: Row) -> None:
        """A broker's word that the offset is out of range: to the incarnation, or to whichever the client has."""
        if row.incarnation is not None:
            led = [row.incarnation]
        else:
            whose = (None, row.client_id)
            led = [name for name, client in self.clients.items() if client in whose]
        for name in led:
            self.void.add(name)
            self.start.pop(name, None)

    def ends(self, row: Row) -> Iterable[Finding]:
        name = row.incarnation
        if row.kind is not Kind.FETCH_OFFSET or name is None or name in self.void:
            return NOTHING
        if row.outcome is Outcome.OK and row.value is not None and row.value >= 0:
            start = self.start.get(name)
            if name not in self.begun or (start is not None and row.value < (start.value or 0)):
                self.start[name] = row
        elif row.outcome is Outcome.REFUSED and row.value == -1:
            self.start.pop(name, None)
        return NOTHING


judge = LaneJudge


def explain(found: BelowTheStart) -> str:
    start, delivered = found.start, found.delivered
    return (
        f"{who(delivered)} delivered offset {delivered.queue_offset} of {delivered.lane} at {at(delivered)}, although "
        f"it had begun the lane at {start.value} (seen at {at(start)})"
    )
