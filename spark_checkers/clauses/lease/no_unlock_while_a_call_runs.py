"""What breaks LSE-15, planted in a history."""

from __future__ import annotations

from functools import partial
from typing import Any

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace
from specs.vocabulary import Kind, Outcome

CLAUSE = "LSE-15"


def unlock_during_a_call(trace: Trace) -> Changes:
    unsaid: dict[str, Any] = dict.fromkeys(
        (*planting.MESSAGE, "reconsume_times", "commit_mode", "attempt", "suspend_ms")
    )
    for calls in trace.calls:
        for row in calls:
            if row.seq_end is not None and row.outcome is Outcome.SUCCESS:
                columns = {**unsaid, "kind": Kind.UNLOCK, "outcome": Outcome.SENT}
                yield partial(
                    lambda r, c: trace.with_more(
                        [trace.another(r, r, 1, at_end=False, **c)], [r.seq_begin]
                    ),
                    row,
                    columns,
                )


DEFECTS = (
    Mutant(
        "unlock-during-call",
        "LSE-15",
        "a lane is given back while its call runs",
        unlock_during_a_call,
    ),
)
