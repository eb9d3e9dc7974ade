"""CMT-10 over columns: as CMT-1, and what was sent back is finished as well."""

from __future__ import annotations

from spark_checkers.clauses.commit import commit_never_passes_unfinished as general
from spark_checkers.lanes import OP_COLUMNS, Op
from spark_checkers.progress import PROGRESS_KINDS, queue_kernel
from spark_checkers.twin import Twin
from specs.vocabulary import Kind


class Group(general.Group):
    """One group on the queue, asked at every commit."""

    __slots__ = ()

    def ends(self, op: Op) -> None:
        # An acknowledged send-back finishes its message just as an acknowledged dead letter does.
        super().ends(op._replace(kind=Kind.DEAD_LETTER) if op.kind is Kind.SEND_BACK else op)


TWIN = Twin(
    "CMT-10",
    (*OP_COLUMNS, "delay_level"),
    queue_kernel(Group, (*PROGRESS_KINDS, Kind.COMMIT, Kind.SEND_BACK)),
)
find = TWIN.find
