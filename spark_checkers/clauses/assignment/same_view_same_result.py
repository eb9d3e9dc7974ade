"""What breaks ASG-4, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace

CLAUSE = "ASG-4"


def shared_otherwise(trace: Trace) -> Changes:
    for mine, other, *_ in planting.shared_alike(trace):
        members, _bar, queues = (mine.view or "").partition(" | ")
        turned = " ".join(reversed(queues.split()))
        if turned != queues:
            change = {mine.seq_begin: {"view": f"{members} | {turned}"}}
            about = (other.seq_begin, mine.seq_begin)
            yield partial(trace.changed, change, about)


DEFECTS = (
    Mutant(
        "another-order",
        "ASG-4",
        "a member shares out in another order",
        shared_otherwise,
        generated=False,
    ),
)
