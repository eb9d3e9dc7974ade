"""ORD-2: within an incarnation, first deliveries come in the order of their offsets.

Decisions where the page leaves room:

- "That call, in auto mode, acknowledged it" speaks of the first call of the incarnation, however late it ended.
- Where nobody says the mode of that call, a later one puts back where it is, or may be, a manual ROLLBACK.
"""

from __future__ import annotations

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import Outcome
from tests.definitions.words import (
    Rows,
    acknowledges,
    adds,
    before,
    began_before,
    calls,
    may_have_rolled_back,
    offset,
    same_incarnation,
    was_reset,
)


def broken(rows: Rows, config: Config) -> bool:
    return any(_went_back(rows, second) for second in calls(rows))


def _went_back(rows: Rows, call: Row) -> bool:
    """Is it a first delivery below one that the incarnation has had, and neither put back nor moved?"""
    earlier = [
        other
        for other in calls(rows)
        if began_before(other, call) and same_incarnation(rows, other, call)
    ]
    if not earlier or any(other.queue_offset == call.queue_offset for other in earlier):
        return False
    if was_reset(rows, earlier[0], call):
        return False
    if adds(rows, call) or offset(call) > offset(earlier[0]):
        return any(offset(call) < offset(other) for other in earlier)
    return _passed_by(earlier, call)


def _passed_by(earlier: Rows, call: Row) -> bool:
    """Did the first call, whose incarnation's begin nobody saw, say that nothing below it was put back?"""
    first = earlier[0]
    if first.commit_mode is None and first.outcome is Outcome.SUCCESS:
        return not any(may_have_rolled_back(other) and before(other, call) for other in earlier)
    return acknowledges(first)
