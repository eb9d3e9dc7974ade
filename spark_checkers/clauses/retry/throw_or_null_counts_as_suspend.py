"""RTY-7 over columns: only what follows a call without a result is looked at."""

from __future__ import annotations

from spark_checkers.calls import CALL_KINDS, CallLane, Calls
from spark_checkers.clauses.retry.no_redelivery_before_suspend import wait_ms
from spark_checkers.lanes import OP_COLUMNS, Op, machine_kernel
from spark_checkers.rows import MS, NEVER
from spark_checkers.twin import Twin
from specs.vocabulary import Outcome


class Lane(CallLane):
    """After a null or a throw the lane must not go on, nor come back too soon."""

    __slots__ = ()

    def next_call(self, calls: Calls, op: Op) -> None:
        if not calls.rows or calls.rows[-1].outcome not in (Outcome.NULL, Outcome.THREW):
            return
        self.stakes += 1
        if op.offset > max(each.offset for each in calls.rows):
            owed = self.owed(calls)
            if owed:
                self.found(owed[-1], calls.failed.get(owed[-1].offset), op)
            return
        for before in calls.rows:
            if before.offset == op.offset:
                wait = wait_ms(before, self.config.suspend_ms)
                if before.ended < NEVER and op.started <= before.ended + (wait - 1) * MS:
                    self.found(before, op)
                return


TWIN = Twin("RTY-7", OP_COLUMNS, machine_kernel(Lane, CALL_KINDS, lease=False))
find = TWIN.find
