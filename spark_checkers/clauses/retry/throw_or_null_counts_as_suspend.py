"""What breaks RTY-7, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace
from specs.clauses.rows import is_manual
from specs.vocabulary import Outcome

CLAUSE = "RTY-7"


def throw_taken_for_success(trace: Trace) -> Changes:
    """The first of two neighbours ends with a throw, and nothing follows from it."""
    for first, second in planting.neighbours(trace):
        if not is_manual(first):
            change = {
                first.seq_begin: {
                    "outcome": Outcome.THREW,
                    "suspend_ms": trace.info.config.suspend_ms,
                }
            }
            about = (first.seq_begin, second.seq_begin)
            yield partial(trace.changed, change, about)


DEFECTS = (
    Mutant("throw-as-success", "RTY-7", "the lane goes on after a throw", throw_taken_for_success),
)
