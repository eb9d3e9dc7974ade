"""The last call of each incarnation of one lane, and its dead letters since: what several twins share.

A stretch is taken whole where nothing is owed: of its calls only the last one's last row is ever looked at.
"""

from __future__ import annotations

from spark_checkers.lanes import LaneItems, Machine, Op, Stretch, asks_again, ended_before
from spark_checkers.rows import NO_TEXT, NONE, Findings
from specs.vocabulary import Kind, Outcome

CALL_KINDS = (Kind.DELIVER, Kind.DEAD_LETTER, Kind.ADD, Kind.RESET)


class Calls:
    """One incarnation: its last call, and which of its messages were given up, or in vain, since it ended."""

    __slots__ = ("failed", "given_up", "op", "rows")

    def __init__(self, op: int) -> None:
        self.op = op
        self.rows: list[Op] = []
        self.given_up: set[int] = set()
        self.failed: dict[int, Op] = {}


class CallLane(Machine):
    """Follows the calls; a subclass says what may follow a call."""

    __slots__ = ("calls",)

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.calls: dict[int, Calls] = {}

    def next_call(self, calls: Calls, op: Op) -> None:
        """A call begins, and the one before is over."""

    def owed(self, calls: Calls) -> list[Op]:
        """The messages that certainly have to come again: not given up, nor perhaps given up unseen."""
        limit = self.config.max_reconsume_times
        return [
            each
            for each in calls.rows
            if each.offset not in calls.given_up
            and (each.offset in calls.failed or limit < 0 or NONE < each.reconsume < limit)
        ]

    def takes(self, stretch: Stretch) -> bool:
        first, last = stretch.first, stretch.last
        calls = self.calls.get(first.incarnation)
        if calls is None:
            calls = self.calls[first.incarnation] = Calls(last.op)
        elif calls.op == first.op or calls.failed or (calls.rows and asks_again(calls.rows[-1])):
            return False
        calls.op = last.op
        calls.rows = [last]
        calls.given_up.clear()
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
            if all(ended_before(each, op) for each in calls.rows):
                self.next_call(calls, op)
            calls.op = op.op
            calls.rows = []
            calls.given_up.clear()
            calls.failed.clear()
        calls.rows.append(op)

    def ends(self, op: Op) -> None:
        if op.kind is not Kind.DEAD_LETTER or op.incarnation == NO_TEXT or op.offset < 0:
            return
        calls = self.calls.get(op.incarnation)
        if calls is None:
            calls = self.calls[op.incarnation] = Calls(NONE)
        if calls.rows and not ended_before(calls.rows[-1], op):
            return
        if op.outcome is Outcome.OK:
            calls.given_up.add(op.offset)
            calls.failed.pop(op.offset, None)
        else:
            calls.failed[op.offset] = op
