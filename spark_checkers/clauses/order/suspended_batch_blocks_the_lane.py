"""ORD-3 over columns: a stretch that begins when nothing runs and nothing is owed is taken whole."""

from __future__ import annotations

from functools import partial
from typing import Any

from spark_checkers.findings import Findings
from spark_checkers.lanes import (
    OP_COLUMNS,
    LaneItems,
    Machine,
    Op,
    Stretch,
    asks_again,
    ended_before,
    ends_as,
    machine_kernel,
)
from spark_checkers.planting import Changes, Mutant, Planted, Trace
from spark_checkers.segments import NO_TEXT, NONE
from spark_checkers.twin import Twin
from specs.history.row import Row
from specs.vocabulary import LISTENER_SUSPENDS, Kind, Outcome


class Calls:
    """The calls of one incarnation: the rows of the last one, of all rows the one that ends last, and what is owed."""

    __slots__ = ("failed", "given_up", "last_end", "op", "owed", "rows")

    def __init__(self, op: int) -> None:
        self.op = op
        self.rows: list[Op] = []
        self.given_up: set[int] = set()  # offsets of the last call, given up since it ended
        self.failed: dict[int, Op] = {}  # by offset: dead letters that were not acknowledged
        self.owed: dict[
            int, Op
        ] = {}  # by offset: put back before the last call, neither seen again nor given up
        self.last_end: Op | None = None


class Lane(Machine):
    """The last call of each incarnation, and what is still owed of it."""

    ENDS = ends_as([Kind.DEAD_LETTER])

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.calls: dict[int, Calls] = {}

    def takes(self, stretch: Stretch) -> bool:
        first, last = stretch.first, stretch.last
        calls = self.calls.get(first.incarnation)
        if calls is None:
            calls = self.calls[first.incarnation] = Calls(last.op)
            self.stakes += stretch.calls - 1
        else:
            if calls.last_end is not None and not ended_before(calls.last_end, first):
                return False
            if calls.owed or asks_again(calls.rows[-1]):
                return False
            self.stakes += stretch.calls
        calls.op = last.op
        # Only the last row of a call that asks for nothing is ever looked at.
        calls.rows = [last]
        calls.given_up.clear()
        calls.failed.clear()
        calls.last_end = last
        return True

    def begins(self, op: Op) -> None:
        if op.kind is Kind.RESET:
            self.calls.clear()
        elif op.incarnation == NO_TEXT:
            return
        elif op.kind is Kind.ADD:
            self.calls.pop(op.incarnation, None)
        elif op.kind is Kind.DELIVER and op.offset >= 0:
            self._deliver(op)

    def _deliver(self, op: Op) -> None:
        calls = self.calls.get(op.incarnation)
        if calls is None:
            calls = self.calls[op.incarnation] = Calls(op.op)
        elif op.op != calls.op:
            self.stakes += 1
            self._new_call(calls, op)
            calls.op = op.op
            calls.rows = []
            calls.given_up.clear()
        self._is_over(calls, op.offset)
        calls.rows.append(op)
        if calls.last_end is None or op.end >= calls.last_end.end:
            calls.last_end = op

    def _new_call(self, calls: Calls, op: Op) -> None:
        last = calls.rows[-1]
        if calls.last_end is not None and not ended_before(calls.last_end, op):
            self.found(calls.last_end, op)
            return
        if asks_again(last):
            limit = self.config.max_reconsume_times
            for each in calls.rows:
                told = each.offset in calls.failed or limit < 0 or NONE < each.reconsume < limit
                if last.outcome is Outcome.ROLLBACK or (told and each.offset not in calls.given_up):
                    calls.owed[each.offset] = each
        if calls.owed and op.offset > max(calls.owed):
            message = calls.owed[max(calls.owed)]
            self.found(message, op, calls.failed.get(message.offset))
            calls.owed.clear()
            calls.failed.clear()

    @staticmethod
    def _is_over(calls: Calls, offset: int) -> None:
        """The message came again, or was given up."""
        calls.owed.pop(offset, None)
        calls.failed.pop(offset, None)

    def ends(self, op: Op) -> None:
        if op.kind is not Kind.DEAD_LETTER or op.offset < 0:
            return
        arrived = op.outcome is Outcome.OK
        if op.incarnation != NO_TEXT:
            known = self.calls.get(op.incarnation)
            mine = [] if known is None else [known]
        else:  # it arrived, for whichever work of its client
            every = self.calls.values() if arrived else ()
            mine = [calls for calls in every if calls.rows[-1].client == op.client]
        for calls in mine:
            if op.offset in calls.owed:
                if ended_before(calls.owed[op.offset], op):
                    self._gave_up(calls, op)
            elif ended_before(calls.rows[-1], op):
                if arrived:
                    calls.given_up.add(op.offset)
                self._gave_up(calls, op)

    def _gave_up(self, calls: Calls, letter: Op) -> None:
        """The message was given up, or that failed."""
        if letter.outcome is Outcome.OK:
            self._is_over(calls, letter.offset)
        else:
            calls.failed[letter.offset] = letter


_KINDS = (Kind.DELIVER, Kind.DEAD_LETTER, Kind.ADD, Kind.RESET)
TWIN = Twin("ORD-3", OP_COLUMNS, machine_kernel(Lane, _KINDS, lease=False))
find = TWIN.find


# ---- what breaks the clause, planted


def overtake_suspended(trace: Trace) -> Changes:
    for calls in trace.calls:
        for index, row in enumerate(calls):
            if (
                row.outcome not in LISTENER_SUSPENDS
                or row.seq_end is None
                or row.queue_offset is None
            ):
                continue
            again = calls[index + 1] if index + 1 < len(calls) else None
            if (
                again is None
                or again.queue_offset != row.queue_offset
                or again.started_us <= (row.ended_us or 0)
            ):
                continue
            later = next(
                (c for c in calls[index + 1 :] if (c.queue_offset or 0) > (row.queue_offset or 0)),
                None,
            )
            if later is not None and not later.reconsume_times:
                yield partial(_overtaken, trace, row, later)


def _overtaken(trace: Trace, suspended: Row, later: Row) -> Planted:
    columns: dict[str, Any] = {
        "outcome": Outcome.SUCCESS,
        "suspend_ms": None,
        "reconsume_times": later.reconsume_times,
    }
    early = trace.another(later, suspended, 1, **columns)
    return trace.with_more([early], [suspended.seq_begin])


DEFECTS = (
    Mutant(
        "overtake-suspended",
        "ORD-3",
        "the next message is delivered while one is suspended",
        overtake_suspended,
    ),
)
