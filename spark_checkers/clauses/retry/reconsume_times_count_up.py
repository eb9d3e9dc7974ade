"""RTY-3 over columns: a stretch of first deliveries that carry 0 is taken whole."""

from __future__ import annotations

from spark_checkers.counting import COUNTING_KINDS, Counter, Counting
from spark_checkers.lanes import OP_COLUMNS, Op, asks_again, ended_before, machine_kernel
from spark_checkers.rows import NONE
from spark_checkers.twin import Twin


class Lane(Counting):
    """Compares each delivery with the one before of the same incarnation."""

    __slots__ = ()

    def delivered(self, counter: Counter, op: Op) -> None:
        last = counter.last
        if op.reconsume == NONE:
            return
        if last is not None and last.offset == op.offset:
            follows = asks_again(last) and ended_before(last, op) and not counter.dead_letter_failed
            if follows and last.reconsume != NONE:
                self.stakes += 1
                if op.reconsume != last.reconsume + 1:
                    self.found(last, op)
        elif op.offset > counter.highest and counter.add is not None and op.reconsume != 0:
            self.found(counter.add, op)


TWIN = Twin("RTY-3", OP_COLUMNS, machine_kernel(Lane, COUNTING_KINDS, lease=False))
find = TWIN.find
