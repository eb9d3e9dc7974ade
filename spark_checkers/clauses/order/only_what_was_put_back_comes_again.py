"""What breaks ORD-10, planted in a history."""

from __future__ import annotations

import itertools
from functools import partial

from spark_checkers.planting import Changes, Mutant, Trace
from specs.clauses.rows import is_manual
from specs.vocabulary import Outcome

CLAUSE = "ORD-10"


def finished_comes_again(trace: Trace) -> Changes:
    for calls in trace.calls:
        for before, row in itertools.pairwise(calls):
            done = (
                before.outcome is Outcome.SUCCESS
                and before.seq_end is not None
                and not is_manual(before)
            )
            if done and (before.seq_end or 0) < row.seq_begin and before.op_id != row.op_id:
                again = trace.another(before, before, 1, attempt=2)
                yield partial(lambda a, b: trace.with_more([a], [b.seq_begin]), again, before)


DEFECTS = (
    Mutant(
        "finished-comes-again",
        "ORD-10",
        "a finished message is delivered again",
        finished_comes_again,
    ),
)
