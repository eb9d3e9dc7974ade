"""DLQ-3 over columns: a stretch that holds nothing that was given up is passed over."""

from __future__ import annotations

from spark_checkers.batches import BATCH_KINDS, BatchLane, Work
from spark_checkers.lanes import OP_COLUMNS, Op, machine_kernel
from spark_checkers.twin import Twin


class Lane(BatchLane):
    """What was given up comes again with others that have to, or not at all; manual mode is left alone."""

    __slots__ = ()

    def delivered(self, work: Work, op: Op) -> None:
        letter, told = work.letters.get(op.offset), work.back.get(op.offset) is False
        rightly = work.rightly(op.offset, op.op)
        wrong = rightly is False or (rightly is None and self.config.batch == 1)
        held = work.calls.get(work.latest.get(op.offset, -1), {}) if self.config.batch > 1 else {}
        batch = [*held.values(), *(work.letters[each] for each in held if each in work.letters)]
        work.deliver(op)
        if letter is not None and wrong and not work.manual:
            work.back[op.offset] = False
            if not told:
                self.found(letter, op, *batch)


TWIN = Twin("DLQ-3", OP_COLUMNS, machine_kernel(Lane, BATCH_KINDS, lease=False))
find = TWIN.find
