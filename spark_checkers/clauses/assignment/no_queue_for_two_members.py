"""What breaks ASG-1, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace

CLAUSE = "ASG-1"


def taken_twice(trace: Trace) -> Changes:
    for mine, other, *_ in planting.shared_alike(trace):
        if other.detail:
            change = {
                mine.seq_begin: {"detail": f"{mine.detail} {other.detail.split()[0]}".strip()}
            }
            about = (other.seq_begin, mine.seq_begin)
            yield partial(trace.changed, change, about)


def seen_by_one_only(trace: Trace) -> Changes:
    for mine, other, *_ in planting.shared_alike(trace):
        if other.detail:
            change = {mine.seq_begin: {"view": f"newcomer {mine.view}", "detail": other.detail}}
            yield partial(trace.changed, change)


DEFECTS = (
    Mutant(
        "taken-twice",
        "ASG-1",
        "a member takes a queue that another one took",
        taken_twice,
        generated=False,
    ),
)

LOOKALIKES = (
    Mutant(
        "seen-by-one-only",
        None,
        "a member sees somebody whom the others don't",
        seen_by_one_only,
        generated=False,
    ),
)
