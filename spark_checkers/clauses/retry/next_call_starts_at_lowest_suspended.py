"""RTY-4 over columns: only what follows a suspended call is looked at."""

from __future__ import annotations

from spark_checkers.calls import CALL_KINDS, CallLane, Calls
from spark_checkers.lanes import OP_COLUMNS, Op, machine_kernel
from spark_checkers.twin import Twin
from specs.vocabulary import LISTENER_SUSPENDS


class Lane(CallLane):
    """Compares the start of each call with the batch that was suspended before it."""

    __slots__ = ()

    def next_call(self, calls: Calls, op: Op) -> None:
        if not calls.rows or calls.rows[-1].outcome not in LISTENER_SUSPENDS:
            return
        batch = sorted(calls.rows, key=lambda each: each.offset)
        kept = [each for each in batch if each.offset not in calls.given_up]
        if kept:
            self.stakes += 1
            if op.offset <= batch[-1].offset and op.offset not in (batch[0].offset, kept[0].offset):
                self.found(kept[0], batch[-1], op)


TWIN = Twin("RTY-4", OP_COLUMNS, machine_kernel(Lane, CALL_KINDS, lease=False))
find = TWIN.find
