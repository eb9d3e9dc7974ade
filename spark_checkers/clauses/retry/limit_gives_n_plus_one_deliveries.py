"""RTY-5 over columns: only deliveries that ended badly, and dead letters, are looked at one by one."""

from __future__ import annotations

from functools import partial

from spark_checkers.counting import COUNTING_KINDS, Counter, Counting, Try
from spark_checkers.lanes import OP_COLUMNS, Op, ended_before, ends_as, machine_kernel
from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.segments import NONE
from spark_checkers.twin import Twin
from specs.vocabulary import LISTENER_SUSPENDS, Kind, Outcome


class Lane(Counting):
    """Compares what follows a delivery with the counters that its call carried."""

    ENDS = ends_as([Kind.DELIVER], (*LISTENER_SUSPENDS, Outcome.ROLLBACK))

    def delivered(self, counter: Counter, last: Try | None, op: Op) -> None:
        if last is None or last.failed or not ended_before(last.ops[op.offset], op):
            return
        shown = self._over(counter, last)
        if shown is not None:
            mine = last.ops[op.offset]
            self.found(*(each for each in shown if each is not mine), mine, op)

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
            if mine is not None and mine.number == op.op:
                self.stakes += self._over(counter, mine) is not None
        super().ends(op)

    def _over(self, counter: Counter, call: Try) -> list[Op] | None:
        """The rows without which nobody knows that every message of the call had its last try; None if one had not."""
        if not all(self.exhausted(op) for op in call.ops.values()):
            return None
        if self.config.batch == 1 or self.context.info.closed_world:
            return []
        if len(call.ops) >= self.config.batch:
            return list(call.ops.values())
        return None if counter.add is None else [counter.add, *call.ops.values()]


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
