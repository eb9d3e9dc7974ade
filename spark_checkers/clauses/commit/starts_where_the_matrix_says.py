"""What breaks CMT-8, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import STRANGER, Changes, Mutant, Planted, Trace
from specs.history.row import Row
from specs.vocabulary import Kind

CLAUSE = "CMT-8"


def wrong_start(trace: Trace) -> Changes:
    """A stranger hears an offset and adds the lane elsewhere; it takes nothing, and commits nothing."""
    for commit in planting.acknowledged(trace):
        if not any(row.client_id == STRANGER for row in trace.lanes[commit.lane]):
            yield partial(lambda c: _started_elsewhere(trace, c, 1), commit)


def right_start(trace: Trace) -> Changes:
    for commit in planting.acknowledged(trace):
        yield partial(lambda c: _started_elsewhere(trace, c, 0), commit)


def _started_elsewhere(trace: Trace, commit: Row, beyond: int) -> Planted:
    told = commit.value or 0
    add = planting.looked_up(trace, commit, commit, 2, told + beyond)._replace(
        kind=Kind.ADD, incarnation=f"{STRANGER}#1"
    )
    return trace.with_more(
        [planting.looked_up(trace, commit, commit, 1, told), add], [commit.seq_begin]
    )


DEFECTS = (
    Mutant("wrong-start", "CMT-8", "a lane is not started where it was stored", wrong_start),
)

LOOKALIKES = (
    Mutant("right-start", None, "a stranger adds a lane where it was stored", right_start),
)
