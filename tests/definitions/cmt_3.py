"""CMT-3: in manual mode no commit passes a message whose call did not end in COMMIT, nor a later one.

Decisions where the page leaves room:

- What was taken is a message of a call that ended, in manual mode, in whatever way but COMMIT, before the commit began.
- What finishes it began after its call did, and ended after that and before the commit began.
- A result that finishes in auto mode may have finished where nobody says the mode.
- A dead letter that names no incarnation is of its client's on the lane; one that does not say its mode, of that of the
  last call before it that suspended its message, or of none.
- What may have been given up unseen, and in auto mode, finishes all that was taken before: in a lane without dead
  letters.
"""

from __future__ import annotations

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import LISTENER_SUSPENDS, Kind, Outcome
from tests.definitions.words import (
    AUTO,
    MANUAL,
    Rows,
    adds,
    before,
    began_before,
    calls,
    end_of,
    ended_well,
    is_about,
    is_correction,
    is_used_up,
    may_be_untold,
    moved_in_its_life,
    of,
    of_its_client,
    offset,
    same_incarnation,
    took_effect,
)


def broken(rows: Rows, config: Config) -> bool:
    return config.subscription == "*" and any(
        _moves_past(rows, config, commit, taken)
        for commit in took_effect(rows, Kind.COMMIT)
        if _is_judged(rows, commit)
        for taken in calls(rows)
        if taken.commit_mode == MANUAL
        and taken.outcome not in (Outcome.COMMIT, Outcome.CUT)
        and before(taken, commit)
        and same_incarnation(rows, taken, commit)
    )


def _is_judged(rows: Rows, commit: Row) -> bool:
    begins = adds(rows, commit)
    dropped = any(
        same_incarnation(rows, drop, commit) and began_before(drop, commit)
        for drop in took_effect(rows, Kind.DROP)
    )
    return (
        bool(begins)
        and commit.value != begins[-1].value
        and not dropped
        and not is_correction(rows, commit)
        and not moved_in_its_life(rows, commit)
    )


def _moves_past(rows: Rows, config: Config, commit: Row, taken: Row) -> bool:
    return offset(taken) < (commit.value or 0) and not any(
        began_before(taken, row)
        and end_of(taken) < end_of(row)
        and before(row, commit)
        and _commits_all(rows, config, row, commit)
        and _is_in_its_hands(rows, taken, row)
        for row in of(rows, Kind.DELIVER, Kind.DEAD_LETTER)
    )


def _is_in_its_hands(rows: Rows, taken: Row, row: Row) -> bool:
    """Was the message given again after the last ROLLBACK that had put it back?"""
    put_back = [
        other
        for other in calls(rows)
        if other.outcome is Outcome.ROLLBACK
        and other.commit_mode == MANUAL
        and same_incarnation(rows, other, taken)
        and (other is taken or began_before(taken, other))
        and end_of(other) < end_of(row)
    ]
    return not put_back or any(
        again.queue_offset == taken.queue_offset
        and same_incarnation(rows, again, taken)
        and before(put_back[-1], again)
        and (again is row or began_before(again, row))
        for again in calls(rows)
    )


def _commits_all(rows: Rows, config: Config, row: Row, commit: Row) -> bool:
    if not of_its_client(rows, row, commit):
        return False
    if row.kind is Kind.DEAD_LETTER:
        return row.outcome is Outcome.OK and _mode_of(rows, row) == AUTO
    unseen = (
        row.commit_mode != MANUAL
        and row.outcome in LISTENER_SUSPENDS
        and is_used_up(config, row)
        and may_be_untold(rows, commit)
    )
    return row.outcome is Outcome.COMMIT or ended_well(row) or unseen


def _mode_of(rows: Rows, letter: Row) -> str | None:
    modes = [
        call.commit_mode
        for call in calls(rows)
        if is_about(rows, letter, call)
        and call.outcome in LISTENER_SUSPENDS
        and before(call, letter)
    ]
    return letter.commit_mode or (modes[-1] if modes else None)
