"""LSE-6 over columns: lock and unlock rows are few, so a machine per lane goes through them."""

from __future__ import annotations

from spark_checkers.grants import RELEASED, LastGrantLane
from spark_checkers.lanes import OP_COLUMNS, Op, machine_kernel
from spark_checkers.twin import Twin
from specs.vocabulary import Kind


class Lane(LastGrantLane):
    """Wants every lane granted that its owner gave back."""

    __slots__ = ()

    def free(self, op: Op, grant: Op, why: str) -> None:
        if why == RELEASED:
            self.at_stake(op, True, grant, self.last.released)


TWIN = Twin("LSE-6", OP_COLUMNS, machine_kernel(Lane, (Kind.LOCK, Kind.UNLOCK), lease=True))
find = TWIN.find
