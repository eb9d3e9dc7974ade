"""What breaks DLQ-1, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace
from specs.vocabulary import Outcome

CLAUSE = "DLQ-1"


def second_try_arrives(trace: Trace) -> Changes:
    for last, letter, _after in planting.given_up(trace):
        failed = {"outcome": Outcome.REFUSED, "code": 1, "attempt": 1}
        yield partial(
            lambda r, a, f: Trace(
                trace.changed({a.seq_begin: {"attempt": 2}}).rows, trace.info
            ).with_more([trace.another(a, r, 1, **f)], [a.seq_begin]),
            last,
            letter,
            failed,
        )


def lost_dead_letter(trace: Trace) -> Changes:
    for marker, row in planting.dead_reads(trace):
        yield partial(lambda m, r: trace.without([r.seq_begin], [m.seq_begin]), marker, row)


DEFECTS = (
    Mutant(
        "lost-dead-letter", "DLQ-1", "a dead letter is missing", lost_dead_letter, dead_letters=True
    ),
)

LOOKALIKES = (
    Mutant(
        "second-try-arrives",
        None,
        "a dead letter is refused at first, and acknowledged then",
        second_try_arrives,
    ),
)
