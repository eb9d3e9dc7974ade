"""LSE-6 over columns: lock and unlock rows are few, so a machine per lane goes through them."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import STRANGER, Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.facts.grants import OWN, RELEASED, LastGrantLane
from specs.facts.lanes import OP_COLUMNS, Op, machine_kernel
from specs.vocabulary import Kind, Outcome


class Lane(LastGrantLane):
    """Wants every lane granted that its owner gave back."""

    def free(self, op: Op, grant: Op, why: str) -> None:
        unlock = self.last.arrived(op) if why == OWN else self.last.released
        if why in (OWN, RELEASED) and unlock is not None:
            self.at_stake(op, True, grant, unlock)


TWIN = Twin("LSE-6", OP_COLUMNS, machine_kernel(Lane, (Kind.LOCK, Kind.UNLOCK), lease=True))
find = TWIN.find


# ---- what breaks the clause, planted


def unlock_in_vain(trace: Trace) -> Changes:
    for lock in planting.held(trace):
        yield partial(
            lambda a: trace.with_more(
                [
                    planting.lock(trace, a, 1, str(a.client_id), Outcome.OK)._replace(
                        kind=Kind.UNLOCK
                    ),
                    planting.lock(trace, a, 2, STRANGER, Outcome.REFUSED),
                ],
                [a.seq_begin],
            ),
            lock,
        )


DEFECTS = (
    Mutant(
        "unlock-in-vain",
        "LSE-6",
        "the owner gives a lane back, and the next one is refused",
        unlock_in_vain,
    ),
)
