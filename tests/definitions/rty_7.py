"""RTY-7: a listener that throws, or returns nothing, has asked for its batch again, as if it had said SUSPEND.

What is owed is said in ORD-3, and what comes too early in RTY-1; their decisions are this one's too.

- The lane goes on beyond a message by a call that starts above it, also at another message of the batch.
- What runs at the same time is ORD-3's matter.
"""

from __future__ import annotations

from specs.plan.config import Config
from specs.vocabulary import Outcome
from tests.definitions.ord_3 import is_owed
from tests.definitions.rty_1 import came_early
from tests.definitions.words import (
    Rows,
    before,
    calls,
    offset,
    same_call,
    same_incarnation,
    was_reset,
)

RESULTS = (Outcome.THREW, Outcome.NULL)


def broken(rows: Rows, config: Config) -> bool:
    return any(came_early(rows, config, call, RESULTS) for call in calls(rows)) or any(
        message.outcome in RESULTS
        and before(message, call)
        and same_incarnation(rows, message, call)
        and not was_reset(rows, message, call)
        and is_owed(rows, config, message, call)
        and all(offset(row) > offset(message) for row in calls(rows) if same_call(row, call))
        for message in calls(rows)
        for call in calls(rows)
    )
