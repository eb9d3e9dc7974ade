"""RTY-3: within an incarnation, the reconsume times of a message count up from 0, one by one.

Decisions where the page leaves room:

- The delivery before is the incarnation's last one of that message; it counts where it was suspended.
- Whether retries were used up is asked of the counter that the delivery before carried.
- A reset excuses what comes after it: the message may be taken anew.
"""

from __future__ import annotations

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import LISTENER_SUSPENDS
from tests.definitions.words import (
    Rows,
    adds,
    before,
    began_before,
    calls,
    letter_failed_between,
    replayed_before,
    same_call,
    same_incarnation,
    was_reset,
)


def broken(rows: Rows, config: Config) -> bool:
    return any(_miscounted(rows, config, call) for call in calls(rows))


def _miscounted(rows: Rows, config: Config, call: Row) -> bool:
    earlier = [
        other
        for other in calls(rows)
        if other.queue_offset == call.queue_offset
        and began_before(other, call)
        and same_incarnation(rows, other, call)
    ]
    if call.reconsume_times is None or (call.topic or "").startswith("%"):
        return False
    if not earlier:
        begins = adds(rows, call)
        return bool(begins) and call.reconsume_times != 0 and not was_reset(rows, begins[-1], call)
    last = earlier[-1]
    return (
        last.reconsume_times is not None
        and last.outcome in LISTENER_SUSPENDS
        and before(last, call)
        and call.reconsume_times not in _right(rows, config, last)
        and not replayed_before(rows, call)
        and not letter_failed_between(rows, last, call)
        and not was_reset(rows, last, call)
    )


def _right(rows: Rows, config: Config, last: Row) -> set[int]:
    """What may follow: one more, or the same of a message without retries left, for the sake of others."""
    had, limit = last.reconsume_times or 0, config.max_reconsume_times
    others = [row for row in calls(rows) if same_call(row, last) and row is not last]
    used_up = 0 <= limit <= had
    return {had + 1, had} if used_up and others else {had + 1}
