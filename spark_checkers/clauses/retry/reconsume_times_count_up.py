"""What breaks RTY-3, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace
from specs.clauses.rows import acknowledges

CLAUSE = "RTY-3"


def counter_reset(trace: Trace) -> Changes:
    if trace.info.config.batch != 1:
        return
    for before, row in planting.redelivered(trace):
        counted = row.reconsume_times == (before.reconsume_times or 0) + 1
        if counted and before.reconsume_times is not None and acknowledges(row):
            change = {row.seq_begin: {"reconsume_times": 0}}
            about = (before.seq_begin, row.seq_begin)
            yield partial(trace.changed, change, about)


DEFECTS = (Mutant("counter-reset", "RTY-3", "the retry counter starts anew", counter_reset),)
