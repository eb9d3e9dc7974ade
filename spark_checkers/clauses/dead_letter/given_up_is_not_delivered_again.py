"""DLQ-3 over columns: a stretch that holds nothing that was given up is passed over."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.facts.batches import BATCH_KINDS, BatchLane, Work
from specs.facts.lanes import OP_COLUMNS, Op, machine_kernel
from specs.vocabulary import Outcome


class Lane(BatchLane):
    """What was given up comes again with others that have to, or not at all; manual mode is left alone."""

    def delivered(self, work: Work, op: Op) -> None:
        letter = work.letters.get(op.offset)
        if letter is None:
            work.deliver(op)
            return
        told = work.back.get(op.offset) is False
        rightly = work.rightly(op.offset, op.op)
        wrong = rightly is False or (rightly is None and self.config.batch == 1)
        held = work.calls.get(work.latest.get(op.offset, -1), {}) if self.config.batch > 1 else {}
        batch = [*held.values(), *(work.letters[each] for each in held if each in work.letters)]
        wrong = wrong and not work.manual
        work.deliver(op)
        if wrong:
            work.back[op.offset] = False
            if not told:
                self.found(letter, op, *batch)


TWIN = Twin("DLQ-3", OP_COLUMNS, machine_kernel(Lane, BATCH_KINDS, lease=False))
find = TWIN.find


# ---- what breaks the clause, planted


def given_up_comes_back(trace: Trace) -> Changes:
    if trace.info.config.batch != 1:
        return
    for last, letter, _after in planting.given_up(trace):
        columns = {
            "outcome": Outcome.SUCCESS,
            "suspend_ms": None,
            "reconsume_times": (last.reconsume_times or 0) + 1,
        }
        yield partial(
            lambda r, a, c: trace.with_more([trace.another(r, a, 1, **c)], [a.seq_begin]),
            last,
            letter,
            columns,
        )


DEFECTS = (
    Mutant(
        "given-up-comes-back", "DLQ-3", "a given-up message is delivered again", given_up_comes_back
    ),
)
