"""CMT-10 over columns: as CMT-1, and what was sent back is finished as well."""

from __future__ import annotations

from functools import partial

from spark_checkers.clauses.commit import commit_never_passes_unfinished as general
from spark_checkers.planting import CONCURRENT, KEY_ORDERED, Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.clauses.rows import acknowledges
from specs.facts.lanes import OP_COLUMNS, Op, ends_as
from specs.facts.progress import PROGRESS_KINDS, Progress, queue_kernel
from specs.vocabulary import Kind


class Group(general.Group):
    """One group on the queue, asked at every commit."""

    ENDS = Progress.ENDS | ends_as([Kind.SEND_BACK])

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


# ---- what breaks the clause, planted


def commit_past_the_smallest(trace: Trace) -> Changes:
    for rows in trace.works:
        calls = [row for row in rows if row.kind is Kind.DELIVER and acknowledges(row)]
        for row in rows:
            if row.kind is Kind.COMMIT and row.detail is None:
                running = [c for c in calls if c.seq_begin < row.seq_begin < (c.seq_end or 0)]
                if running:
                    change = {row.seq_begin: {"value": (running[-1].queue_offset or 0) + 1}}
                    about = (running[-1].seq_begin, row.seq_begin)
                    yield partial(trace.changed, change, about)


DEFECTS = (
    Mutant(
        "commit-past-the-smallest",
        "CMT-10",
        "a commit passes a call that runs",
        commit_past_the_smallest,
        generated=False,
        consumed=CONCURRENT,
    ),
    Mutant(
        "commit-past-a-key",
        "CMT-10",
        "a commit passes a call that runs",
        commit_past_the_smallest,
        generated=False,
        consumed=KEY_ORDERED,
    ),
)
