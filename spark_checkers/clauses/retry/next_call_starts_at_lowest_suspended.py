"""RTY-4 over columns: only what follows a suspended call is looked at, until all of it came again."""

from __future__ import annotations

from functools import partial

from spark_checkers.calls import CALL_KINDS, CallLane, Calls
from spark_checkers.lanes import OP_COLUMNS, Op, machine_kernel
from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.clauses.rows import acknowledges
from specs.vocabulary import LISTENER_SUSPENDS, Outcome


class Lane(CallLane):
    """Where a call starts after a suspended one, and what it leaves behind."""

    def next_call(self, calls: Calls, op: Op) -> None:
        due = self.due(calls)
        self.stakes += bool(due)
        if calls.rows and calls.rows[-1].outcome in LISTENER_SUSPENDS:
            offsets = {each.offset for each in calls.rows}
            mine = [each for each in due if each.offset in offsets and each in calls.rows]
            whole = (
                calls.whole or len(calls.rows) >= self.config.batch
            )  # else some of it may be cut off
            low, high = min(offsets) if whole else 0, max(offsets)
            if mine and op.offset <= high and not low <= op.offset <= mine[0].offset:
                highest = next(each for each in calls.rows if each.offset == high)
                self.found(mine[0], highest, op)
                self.forget(calls, op.offset)
                return
        self._left_behind(calls, op)

    def same_call(self, calls: Calls, op: Op) -> None:
        self.stakes += self._left_behind(calls, op)

    def _left_behind(self, calls: Calls, op: Op) -> bool:
        due = self.due(calls)
        if not due or due[0].offset >= op.offset:
            return False
        self.found(due[0], calls.failed.get(due[0].offset), op, name="left-behind")
        self.forget(calls, op.offset)
        return True


TWIN = Twin("RTY-4", OP_COLUMNS, machine_kernel(Lane, CALL_KINDS, lease=False))
find = TWIN.find


# ---- what breaks the clause, planted


def start_before_suspended(trace: Trace) -> Changes:
    """A message that was finished comes in the place of the suspended one that follows it."""
    for calls in trace.calls:
        if any(row.outcome is Outcome.ROLLBACK for row in calls):
            continue
        for before, suspended, again in zip(calls, calls[1:], calls[2:], strict=False):
            gone = (
                before.queue_offset is not None
                and before.queue_offset + 1 == suspended.queue_offset
            )
            fine = (
                acknowledges(before)
                and suspended.outcome in LISTENER_SUSPENDS
                and suspended.seq_end is not None
            )
            if gone and fine and again.queue_offset == suspended.queue_offset:
                yield partial(
                    lambda b, s: trace.with_more([trace.another(b, s, 1)], [s.seq_begin]),
                    before,
                    suspended,
                )


DEFECTS = (
    Mutant(
        "start-before-suspended",
        "RTY-4",
        "a call starts before the suspended message",
        start_before_suspended,
    ),
)
