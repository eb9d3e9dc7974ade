"""What breaks ASG-2, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace

CLAUSE = "ASG-2"


def taken_by_nobody(trace: Trace) -> Changes:
    for mine, other, *_ in planting.shared_alike(trace):
        if mine.detail:
            change = {mine.seq_begin: {"detail": " ".join(mine.detail.split()[1:])}}
            about = (other.seq_begin, mine.seq_begin)
            yield partial(trace.changed, change, about)


DEFECTS = (
    Mutant(
        "taken-by-nobody",
        "ASG-2",
        "a member leaves a queue of its share out",
        taken_by_nobody,
        generated=False,
    ),
)
