"""DLQ-6 over columns: only what follows a dead letter that failed is looked at."""

from __future__ import annotations

from spark_checkers.calls import CALL_KINDS, CallLane, Calls
from spark_checkers.lanes import OP_COLUMNS, Op, machine_kernel
from spark_checkers.twin import Twin


class Lane(CallLane):
    """The next call must not start beyond a message whose dead letter failed."""

    __slots__ = ()

    def next_call(self, calls: Calls, op: Op) -> None:
        if calls.failed:
            self.stakes += 1
            lowest = min(calls.failed)
            if op.offset > lowest:
                self.found(calls.failed[lowest], op)


TWIN = Twin("DLQ-6", OP_COLUMNS, machine_kernel(Lane, CALL_KINDS, lease=False))
find = TWIN.find
