"""DLQ-6 over columns: only what follows a dead letter that failed is looked at."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.calls import CALL_KINDS, CallLane, Calls
from spark_checkers.lanes import OP_COLUMNS, Op, machine_kernel
from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.vocabulary import Kind, Outcome


class Lane(CallLane):
    """No delivery is beyond a message whose dead letter failed and that has not come again."""

    STAKE = Kind.DEAD_LETTER

    def next_call(self, calls: Calls, op: Op) -> None:
        self.stakes += bool(calls.failed)
        self._skips(calls, op)

    def same_call(self, calls: Calls, op: Op) -> None:
        self.stakes += self._skips(calls, op)

    def _skips(self, calls: Calls, op: Op) -> bool:
        lowest = min(calls.failed, default=op.offset)
        if lowest >= op.offset:
            return False
        self.found(calls.failed[lowest], op)
        calls.failed = {
            offset: letter for offset, letter in calls.failed.items() if offset >= op.offset
        }
        return True


TWIN = Twin("DLQ-6", OP_COLUMNS, machine_kernel(Lane, CALL_KINDS, lease=False))
find = TWIN.find


# ---- what breaks the clause, planted


def failed_dead_letter_skipped(trace: Trace) -> Changes:
    for _last, letter, after in planting.given_up(trace):
        change = {letter.seq_begin: {"outcome": Outcome.REFUSED, "code": 1}}
        about = (letter.seq_begin, after.seq_begin)
        yield partial(trace.changed, change, about)


DEFECTS = (
    Mutant(
        "failed-letter-skipped",
        "DLQ-6",
        "a dead letter is refused, the lane goes on",
        failed_dead_letter_skipped,
    ),
)
