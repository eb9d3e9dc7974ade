"""What each incarnation of one lane has put back and still owes: what several twins share.

A stretch of calls that ended well is taken whole where its incarnation owes nothing, and no dead letter failed.
"""

from __future__ import annotations

from collections.abc import Collection

from spark_checkers.lanes import (
    LaneItems,
    Machine,
    Op,
    Stretch,
    ended_before,
    ends_as,
    may_put_back_unseen,
)
from specs.facts.findings import Findings
from specs.facts.segments import NO_TEXT, NONE
from specs.vocabulary import LISTENER_SUSPENDS, Kind, Outcome

CALL_KINDS = (Kind.DELIVER, Kind.DEAD_LETTER, Kind.ADD, Kind.RESET)


class Calls:
    """One incarnation: its last call; by offset, what was put back and is still to come, and which dead letters failed.

    stored: offsets whose dead letter was acknowledged, unless they were delivered again since. whole: the last call is
    not the first that the history shows of the incarnation, so nothing of it can be cut off. born: what began before
    is another life's. rolls: nobody can say that it never rolled back by hand.
    """

    __slots__ = ("born", "call", "failed", "highest", "owed", "rolls", "rows", "stored", "whole")

    def __init__(self, born: int, *, whole: bool = False) -> None:
        self.born = born
        self.whole = whole
        self.rolls = False
        self.call = NONE
        self.rows: list[Op] = []
        self.owed: dict[int, Op] = {}
        self.failed: dict[int, Op] = {}
        self.stored: set[int] = set()
        self.highest = -1  # that was ever in it


class CallLane(Machine):
    """Follows the calls; a subclass says what a delivery may not leave behind."""

    ENDS = ends_as([Kind.DELIVER], (*LISTENER_SUSPENDS, Outcome.ROLLBACK)) | ends_as(
        [Kind.DEAD_LETTER], [Outcome.OK]
    )

    BACK: Collection[Outcome] = LISTENER_SUSPENDS

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.calls: dict[int, Calls] = {}

    def next_call(self, calls: Calls, op: Op) -> None:
        """A call begins, and the one before is over."""

    def same_call(self, calls: Calls, op: Op) -> None:
        """Any other delivery begins."""

    def due(self, calls: Calls) -> list[Op]:
        """What is owed for certain, by offset: nothing that the broker had removed on purpose."""
        owed = self._not_given_up(calls)
        return [op for op in owed if not self.keeps_nothing_before(op.offset + 1)]

    def _not_given_up(self, calls: Calls) -> list[Op]:
        """What is owed and can't have been given up unseen, by offset."""
        limit = self.config.max_reconsume_times
        return sorted(
            (
                op
                for op in calls.owed.values()
                if op.offset in calls.failed or limit < 0 or NONE < op.reconsume < limit
            ),
            key=lambda op: op.offset,
        )

    def forget(self, calls: Calls, below: int) -> None:
        """What is owed below was told of."""
        calls.owed = {offset: op for offset, op in calls.owed.items() if offset >= below}

    def _calls_of(self, op: Op) -> Calls:
        return self.calls.setdefault(
            op.incarnation, Calls(op.begin, whole=self.context.info.closed_world)
        )

    def takes(self, stretch: Stretch) -> bool:
        calls = self._calls_of(stretch.first)
        if calls.owed or calls.failed:
            return False
        calls.whole = calls.whole or bool(calls.rows) or stretch.calls > 1
        calls.call = stretch.last.op
        calls.rows = [stretch.last]
        if calls.highest >= stretch.first.offset:
            calls.stored = {
                offset
                for offset in calls.stored
                if not stretch.first.offset <= offset < stretch.stop
            }
        return True

    def begins(self, op: Op) -> None:
        if op.kind is Kind.RESET:
            self.calls.clear()
        elif op.incarnation == NO_TEXT:
            return
        elif op.kind is Kind.ADD:
            self.calls[op.incarnation] = Calls(op.begin, whole=True)
        elif op.offset >= 0 and op.kind is Kind.DELIVER:
            self._deliver(self._calls_of(op), op)
        elif op.offset >= 0 and op.kind is Kind.DEAD_LETTER:
            calls = self._calls_of(op)
            if op.outcome is not Outcome.OK and op.offset not in calls.stored:
                calls.failed[op.offset] = op

    def _deliver(self, calls: Calls, op: Op) -> None:
        new = op.op != calls.call
        if new and all(ended_before(each, op) for each in calls.rows):
            self.next_call(calls, op)
        else:
            self.same_call(calls, op)
        if new:
            calls.whole = calls.whole or bool(calls.rows)
            calls.call, calls.rows = op.op, []
        calls.rows.append(op)
        calls.owed.pop(op.offset, None)
        calls.failed.pop(op.offset, None)
        calls.stored.discard(op.offset)
        calls.rolls |= may_put_back_unseen(op)
        if calls.rolls:
            self._roll_back(calls)

    def _roll_back(self, calls: Calls) -> None:
        """What may have been given up is replayed after another pause."""
        calls.owed = {each.offset: each for each in self._not_given_up(calls)}

    def ends(self, op: Op) -> None:
        calls = (
            self.calls.get(op.incarnation) if op.incarnation != NO_TEXT and op.offset >= 0 else None
        )
        if calls is None or op.begin < calls.born:
            return
        if op.kind is Kind.DELIVER:
            if op.outcome is Outcome.ROLLBACK:
                self._roll_back(calls)
            if op.outcome in self.BACK:
                calls.owed[op.offset] = op
            if calls.rolls:
                self._roll_back(calls)
        elif op.kind is Kind.DEAD_LETTER and op.outcome is Outcome.OK:
            calls.owed.pop(op.offset, None)
            calls.failed.pop(op.offset, None)
            calls.stored.add(op.offset)
            calls.highest = max(calls.highest, op.offset)
