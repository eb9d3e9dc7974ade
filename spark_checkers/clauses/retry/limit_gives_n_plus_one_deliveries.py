"""RTY-5 over columns: only deliveries that ended badly, and dead letters, are looked at one by one."""

from __future__ import annotations

from functools import partial

from spark_checkers.counting import COUNTING_KINDS, Counter, Counting, Try
from spark_checkers.lanes import OP_COLUMNS, Op, ended_before, machine_kernel
from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.rows import NONE
from spark_checkers.twin import Twin
from specs.vocabulary import Kind, Outcome


class Lane(Counting):
    """Compares what follows a delivery with the counters that its call carried."""

    __slots__ = ()

    def delivered(self, counter: Counter, last: Try | None, op: Op) -> None:
        if (
            last is not None
            and not last.failed
            and self._over(last)
            and ended_before(last.ops[op.offset], op)
        ):
            self.found(last.ops[op.offset], op)

    def given_up(self, last: Try, op: Op) -> None:
        limit, before = self.config.max_reconsume_times, last.ops[op.offset]
        if limit < 0 or before.reconsume == NONE or op.offset in last.failed:
            return
        self.stakes += 1
        if before.reconsume < limit:
            self.found(before, op)

    def ends(self, op: Op) -> None:
        counter = self.counters.get(op.incarnation)
        if op.kind is Kind.DELIVER and counter is not None and not counter.rolled_back:
            mine = counter.tries.get(op.offset)
            self.stakes += mine is not None and mine.number == op.op and self._over(mine)
        super().ends(op)

    def _over(self, call: Try) -> bool:
        """Was every message of the call delivered for the last time allowed, in vain?"""
        return self.complete(call) and all(self.exhausted(op) for op in call.ops.values())


TWIN = Twin("RTY-5", OP_COLUMNS, machine_kernel(Lane, COUNTING_KINDS, lease=False))
find = TWIN.find


# ---- what breaks the clause, planted


def given_up_too_soon(trace: Trace) -> Changes:
    limit = trace.info.config.max_reconsume_times
    if trace.info.config.batch != 1 or limit < 1:
        return
    for rows in trace.works:
        calls = [row for row in rows if row.kind in (Kind.DELIVER, Kind.DEAD_LETTER)]
        if any(row.outcome is Outcome.ROLLBACK for row in calls):
            continue
        for index in range(2, len(calls)):
            first, last, letter = calls[index - 2 : index + 1]
            same = first.queue_offset == last.queue_offset == letter.queue_offset
            kinds = (first.kind, last.kind, letter.kind) == (
                Kind.DELIVER,
                Kind.DELIVER,
                Kind.DEAD_LETTER,
            )
            counted = first.reconsume_times == limit - 1 and last.reconsume_times == limit
            if same and kinds and counted and letter.outcome is Outcome.OK:
                about = (first.seq_begin, letter.seq_begin)
                yield partial(lambda g, a: trace.without([g], a), last.seq_begin, about)


DEFECTS = (
    Mutant(
        "given-up-too-soon",
        "RTY-5",
        "a message is given up one delivery too soon",
        given_up_too_soon,
    ),
)
