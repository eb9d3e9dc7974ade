"""ORD-2 over columns: a stretch above everything delivered so far is taken whole."""

from __future__ import annotations

from functools import partial
from typing import Any

from spark_checkers import planting
from spark_checkers.lanes import (
    OP_COLUMNS,
    LaneItems,
    Machine,
    Op,
    Stretch,
    machine_kernel,
    may_put_back,
)
from spark_checkers.planting import Changes, Mutant, Planted, Trace
from spark_checkers.rows import NO_TEXT, Findings
from spark_checkers.twin import Twin
from specs.clauses.intervals import Intervals
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome


class Delivered:
    """What one incarnation delivered, and the row of the highest offset. first: below it nothing is known."""

    __slots__ = ("first", "highest", "offsets", "root")

    def __init__(self, highest: Op, add: Op | None) -> None:
        self.highest = highest
        self.offsets = Intervals()
        self.root = add or highest
        self.first = 0 if add is not None or is_done(highest) else highest.offset


def is_done(op: Op) -> bool:
    """Does the call leave nothing below it to come again?"""
    if op.manual or may_put_back(op):
        return False
    return op.outcome in (Outcome.SUCCESS, Outcome.COMMIT, Outcome.ROLLBACK)


class Lane(Machine):
    """What each incarnation delivered since its ADD, or since a reset."""

    __slots__ = ("delivered", "void", "watched")

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.watched: dict[int, Op] = {}  # added, and nothing delivered since
        self.delivered: dict[int, Delivered] = {}
        self.void: set[int] = set()  # had delivered when the offset was reset

    def takes(self, stretch: Stretch) -> bool:
        first = stretch.first
        if first.incarnation in self.void:
            return True
        mine = self.delivered.get(first.incarnation)
        if mine is None:
            mine = self._new(first)
            self.stakes -= 1
        elif first.offset <= mine.highest.offset:
            return False
        self.stakes += stretch.rows
        mine.offsets.add(first.offset, stretch.stop)
        mine.highest = stretch.last
        return True

    def begins(self, op: Op) -> None:
        if op.kind is Kind.RESET:
            self.void.update(self.delivered)
            self.delivered.clear()
        elif op.incarnation == NO_TEXT:
            return
        elif op.kind is Kind.ADD:
            self.delivered.pop(op.incarnation, None)
            self.void.discard(op.incarnation)
            self.watched[op.incarnation] = op
        elif op.offset >= 0 and op.incarnation not in self.void:
            self._deliver(op)

    def _new(self, op: Op) -> Delivered:
        found = self.delivered[op.incarnation] = Delivered(
            op, self.watched.pop(op.incarnation, None)
        )
        return found

    def _deliver(self, op: Op) -> None:
        mine = self.delivered.get(op.incarnation)
        if mine is None:
            mine = self._new(op)
        elif op.offset > mine.highest.offset:
            self.stakes += 1
            mine.highest = op
        elif op.offset not in mine.offsets and op.offset >= mine.first:
            self.stakes += 1
            self.found(None if is_done(mine.highest) else mine.root, mine.highest, op)
        mine.offsets.add(op.offset)


TWIN = Twin(
    "ORD-2", OP_COLUMNS, machine_kernel(Lane, (Kind.DELIVER, Kind.ADD, Kind.RESET), lease=False)
)
find = TWIN.find


# ---- what breaks the clause, planted


def swap_deliveries(trace: Trace) -> Changes:
    for first, second in planting.neighbours(trace):
        if first.sharding_key != second.sharding_key or first.sharding_key is None:
            yield partial(planting.swapped, trace, first, second)


def reset_between(trace: Trace) -> Changes:
    for first, second in planting.neighbours(trace):
        if first.sharding_key is None or first.sharding_key != second.sharding_key:
            yield partial(_reset, trace, first, second)


def _reset(trace: Trace, first: Row, second: Row) -> Planted:
    planted = planting.swapped(trace, first, second)
    unsaid = (
        *planting.MESSAGE,
        "incarnation",
        "client_id",
        "reconsume_times",
        "commit_mode",
        "attempt",
    )
    nobody: dict[str, Any] = dict.fromkeys(unsaid)
    reset = trace.another(
        first, first, 1, kind=Kind.RESET, outcome=Outcome.OK, value=second.queue_offset, **nobody
    )
    return Trace(planted.rows, trace.info).with_more([reset], planted.about)


DEFECTS = (
    Mutant(
        "swap-deliveries",
        "ORD-2",
        "two neighbours are delivered the wrong way round",
        swap_deliveries,
    ),
)

LOOKALIKES = (
    Mutant(
        "reset-between",
        None,
        "an operator reset the offset before the delivery that goes back",
        reset_between,
    ),
)
