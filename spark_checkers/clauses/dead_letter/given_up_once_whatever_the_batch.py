"""DLQ-10 over columns: only dead letters are compared, and the batches of what they gave up."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.facts.batches import BATCH_KINDS, BatchLane, Work, is_safe
from specs.facts.lanes import OP_COLUMNS, Op, machine_kernel


class Lane(BatchLane):
    """By incarnation and offset one acknowledged dead letter; whoever was in manual mode is left alone."""

    def given_up(self, work: Work, op: Op) -> None:
        letter = work.letters.get(op.offset)
        if letter is None or work.manual or op.manual:
            return
        if self.config.flush == "async" and self.broker_died_since(letter):
            return
        self.stakes += not is_safe(op)
        call = work.latest.get(op.offset)
        if self.config.batch > 1 and (call is None or work.back.get(op.offset)):
            self.found(letter, op)
        else:
            last = None if call is None else work.calls[call][op.offset]
            self.found(last, letter, op, name="given-up-twice")


TWIN = Twin("DLQ-10", OP_COLUMNS, machine_kernel(Lane, BATCH_KINDS, lease=False))
find = TWIN.find


# ---- what breaks the clause, planted


def given_up_again(trace: Trace) -> Changes:
    for _last, letter, _after in planting.given_up(trace):
        yield partial(lambda a: trace.with_more([trace.another(a, a, 1)], [a.seq_begin]), letter)


DEFECTS = (
    Mutant(
        "given-up-again",
        "DLQ-10",
        "a message of a batch is given up twice",
        given_up_again,
        config={"batch": 2},
    ),
)
