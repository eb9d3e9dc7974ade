"""RTY-5 over columns: only deliveries that ended badly, and dead letters, are looked at one by one."""

from __future__ import annotations

from spark_checkers.counting import COUNTING_KINDS, Counter, Counting
from spark_checkers.lanes import OP_COLUMNS, Op, ended_before, machine_kernel
from spark_checkers.rows import NONE
from spark_checkers.twin import Twin
from specs.vocabulary import LISTENER_SUSPENDS, Kind


class Lane(Counting):
    """Compares what follows a delivery with the counter that it carried."""

    __slots__ = ()

    def _exhausted(self, op: Op) -> bool:
        """Was the message delivered for the last time allowed, in vain?"""
        limit = self.config.max_reconsume_times
        return 0 <= limit <= op.reconsume and op.outcome in LISTENER_SUSPENDS

    def delivered(self, counter: Counter, op: Op) -> None:
        last = counter.last
        if last is None or last.offset != op.offset or not self._exhausted(last):
            return
        if ended_before(last, op) and not counter.dead_letter_failed:
            self.found(last, op)

    def given_up(self, counter: Counter, op: Op) -> None:
        last, limit = counter.last, self.config.max_reconsume_times
        if limit < 0 or last is None or last.reconsume == NONE or counter.dead_letter_failed:
            return
        self.stakes += 1
        if last.reconsume < limit:
            self.found(last, op)

    def ends(self, op: Op) -> None:
        if op.kind is Kind.DELIVER and self.config.batch == 1 and self._exhausted(op):
            self.stakes += 1
        super().ends(op)


TWIN = Twin("RTY-5", OP_COLUMNS, machine_kernel(Lane, COUNTING_KINDS, lease=False))
find = TWIN.find
