"""What breaks DLQ-6, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace
from specs.vocabulary import Outcome

CLAUSE = "DLQ-6"


def failed_dead_letter_skipped(trace: Trace) -> Changes:
    for _last, letter, after in planting.given_up(trace):
        change = {letter.seq_begin: {"outcome": Outcome.REFUSED, "code": 1}}
        about = (letter.seq_begin, after.seq_begin)
        yield partial(trace.changed, change, about)


DEFECTS = (
    Mutant(
        "failed-letter-skipped",
        "DLQ-6",
        "a dead letter is refused, the lane goes on",
        failed_dead_letter_skipped,
    ),
)
