"""RTY-7 over columns: only what follows a call without a result is looked at."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.calls import CALL_KINDS, CallLane, Calls
from spark_checkers.lanes import OP_COLUMNS, Op, machine_kernel, wait_ms
from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.clauses.rows import is_manual
from specs.facts.segments import MS, NEVER
from specs.vocabulary import Outcome


class Lane(CallLane):
    """After a null or a throw the lane must not go on, nor come back too soon."""

    BACK = (Outcome.NULL, Outcome.THREW)

    def next_call(self, calls: Calls, op: Op) -> None:
        self.same_call(calls, op)

    def same_call(self, calls: Calls, op: Op) -> None:
        before = calls.owed.get(op.offset)
        behind = [each for each in self.due(calls) if each.offset < op.offset]
        self.stakes += before is not None or bool(behind)
        if before is not None and self._too_soon(before, op):
            self.found(before, op)
        elif behind:
            self.found(behind[0], calls.failed.get(behind[0].offset), op)
            self.forget(calls, op.offset)

    def _too_soon(self, before: Op, op: Op) -> bool:
        due = before.ended + (wait_ms(before, self.config.suspend_ms) - 1) * MS
        return before.ended < NEVER and op.started <= due


TWIN = Twin("RTY-7", OP_COLUMNS, machine_kernel(Lane, CALL_KINDS, lease=False))
find = TWIN.find


# ---- what breaks the clause, planted


def throw_taken_for_success(trace: Trace) -> Changes:
    """The first of two neighbours ends with a throw, and nothing follows from it."""
    for first, second in planting.neighbours(trace):
        if not is_manual(first):
            change = {
                first.seq_begin: {
                    "outcome": Outcome.THREW,
                    "suspend_ms": trace.info.config.suspend_ms,
                }
            }
            about = (first.seq_begin, second.seq_begin)
            yield partial(trace.changed, change, about)


DEFECTS = (
    Mutant("throw-as-success", "RTY-7", "the lane goes on after a throw", throw_taken_for_success),
)
