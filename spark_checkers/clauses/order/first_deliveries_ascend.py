"""What breaks ORD-2, planted in a history."""

from __future__ import annotations

from functools import partial
from typing import Any

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Planted, Trace
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome

CLAUSE = "ORD-2"


def swap_deliveries(trace: Trace) -> Changes:
    for first, second in planting.neighbours(trace):
        if first.sharding_key != second.sharding_key or first.sharding_key is None:
            yield partial(planting.swapped, trace, first, second)


def reset_between(trace: Trace) -> Changes:
    for first, second in planting.neighbours(trace):
        if first.sharding_key is None or first.sharding_key != second.sharding_key:
            yield partial(_reset, trace, first, second)


def _reset(trace: Trace, first: Row, second: Row) -> Planted:
    planted = planting.swapped(trace, first, second)
    unsaid = (
        *planting.MESSAGE,
        "incarnation",
        "client_id",
        "reconsume_times",
        "commit_mode",
        "attempt",
    )
    nobody: dict[str, Any] = dict.fromkeys(unsaid)
    reset = trace.another(
        first, first, 1, kind=Kind.RESET, outcome=Outcome.OK, value=second.queue_offset, **nobody
    )
    return Trace(planted.rows, trace.info).with_more([reset], planted.about)


DEFECTS = (
    Mutant(
        "swap-deliveries",
        "ORD-2",
        "two neighbours are delivered the wrong way round",
        swap_deliveries,
    ),
)

LOOKALIKES = (
    Mutant(
        "reset-between",
        None,
        "an operator reset the offset before the delivery that goes back",
        reset_between,
    ),
)
