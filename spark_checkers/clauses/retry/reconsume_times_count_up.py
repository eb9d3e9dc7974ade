"""RTY-3 over columns: a stretch of first deliveries that carry 0 is taken whole."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.counting import COUNTING_KINDS, Counter, Counting, Try
from spark_checkers.lanes import OP_COLUMNS, Op, asks_again, ended_before, machine_kernel
from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.segments import NONE
from spark_checkers.twin import Twin
from specs.clauses.rows import acknowledges


class Lane(Counting):
    """Compares each delivery with the one before of the same incarnation."""

    def delivered(self, counter: Counter, last: Try | None, op: Op) -> None:
        if op.reconsume == NONE:
            return
        if last is None:
            add = counter.add
            new = op.offset > counter.highest and op.reconsume != 0
            if new and add is not None and not self.is_of_an_old_life(op.client, add):
                self.stakes += 1
                self.found(add, op)
            return
        before = last.ops[op.offset]
        counted = op.reconsume - before.reconsume
        # One that was tried for the last time may come again because of others, uncounted.
        of_others = (len(last.ops) > 1 or not self.complete(last)) and self.exhausted(before)
        follows = asks_again(before) and ended_before(before, op) and op.offset not in last.failed
        follows = follows and not self.is_of_an_old_life(op.client, before)
        if follows and before.reconsume != NONE and not (of_others and 0 <= counted <= 1):
            self.stakes += 1
            if counted != 1:
                self.found(before, op)


TWIN = Twin("RTY-3", OP_COLUMNS, machine_kernel(Lane, COUNTING_KINDS, lease=False))
find = TWIN.find


# ---- what breaks the clause, planted


def counter_reset(trace: Trace) -> Changes:
    if trace.info.config.batch != 1:
        return
    for before, row in planting.redelivered(trace):
        counted = row.reconsume_times == (before.reconsume_times or 0) + 1
        if counted and before.reconsume_times is not None and acknowledges(row):
            change = {row.seq_begin: {"reconsume_times": 0}}
            about = (before.seq_begin, row.seq_begin)
            yield partial(trace.changed, change, about)


DEFECTS = (Mutant("counter-reset", "RTY-3", "the retry counter starts anew", counter_reset),)
