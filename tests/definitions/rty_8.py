"""RTY-8: an orderly consumer that nobody gave a limit of retries never gives a message up.

Decisions where the page leaves room:

- "Its last call" is the last one of the incarnation that began before the dead letter did, whatever became of it.
- A call that acknowledges in auto mode, or may have where nobody says the mode, covers what was taken as a COMMIT does.
- Of a SUCCESS in a mode of which nobody tells nothing is said: it may have finished the message.
- Of a dead letter that names no incarnation nothing is claimed.
"""

from __future__ import annotations

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import Kind, Outcome
from tests.definitions.words import (
    MANUAL,
    Rows,
    asks_again,
    before,
    began_before,
    calls,
    ended_well,
    of,
    same_call,
    same_incarnation,
)


def broken(rows: Rows, config: Config) -> bool:
    return config.max_reconsume_times < 0 and any(
        _was_not_finished(rows, letter) for letter in of(rows, Kind.DEAD_LETTER)
    )


def _was_not_finished(rows: Rows, letter: Row) -> bool:
    earlier = [
        call
        for call in calls(rows)
        if began_before(call, letter) and same_incarnation(rows, letter, call)
    ]
    had = [call for call in earlier if call.queue_offset == letter.queue_offset]
    if not had:
        return False
    last = had[-1]
    taken = last.outcome is Outcome.SUCCESS and last.commit_mode == MANUAL
    return (
        same_call(last, earlier[-1])
        or asks_again(last)
        or (taken and not _was_covered(rows, last, letter))
    )


def _was_covered(rows: Rows, taken: Row, letter: Row) -> bool:
    return any(
        ended_well(call)
        and same_incarnation(rows, call, taken)
        and began_before(taken, call)
        and before(call, letter)
        for call in calls(rows)
    )
