"""CMT-1: no commit passes an unfinished message at or after the incarnation's start.

Decisions where the page leaves room:

- Finished is a message whose call of auto mode ended with success, commit or rollback, or of manual mode with commit;
  that was given up in auto mode (a dead letter is of the mode of its message's last call, where it says none); or that
  was taken or given up in manual mode and not rolled back when something later of its incarnation was finished.
  A message that was finished once stays so. What ended after its lane had been dropped finished nothing.
- Where nobody says the mode, a result that finishes in one of the modes may have finished.
- A message may have been given up unseen when its retries were used up (or nobody told the counter, and there is a
  limit) and it was put back.
- A message is known by a delivery to the group that began before the commit, and since an operator last moved the
  lane's offset; or by a send that was answered before the commit, unless another group had it before.
- A commit is "after a reset" unless its incarnation was added since: before, its client may have yet to be told.
- A pull was told to go on elsewhere by the code 21; ahead, where nothing was found; or back, where no code is told.
- A look-up that names no incarnation is nobody's; one that has no answer, or tells none, leaves the start unknown.
"""

from __future__ import annotations

from collections.abc import Iterator

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import Kind, Outcome
from tests.definitions.words import (
    Rows,
    adds,
    before,
    began_before,
    calls,
    corrections,
    finished,
    had_by_others,
    is_correction,
    may_be_given_up_unseen,
    moved_in_its_life,
    of,
    offset,
    same_incarnation,
    same_lane,
    same_queue,
    took_effect,
    was_removed,
    was_reset,
)


def broken(rows: Rows, config: Config) -> bool:
    return any(passed(rows, config))


def passed(rows: Rows, config: Config) -> Iterator[tuple[Row, int]]:
    """The commits that pass unfinished messages, and where these lie."""
    for commit in took_effect(rows, Kind.COMMIT):
        # A broker's correction, or what an operator has moved, says nothing.
        if is_correction(rows, commit) or moved_in_its_life(rows, commit):
            continue
        for place in _known(rows, commit):
            if config.subscription == "*" and _passes(rows, config, commit, place):
                yield commit, place


def _known(rows: Rows, commit: Row) -> set[int]:
    """The offsets of the queue that hold a message."""
    return {
        offset(row)
        for row in of(rows, Kind.DELIVER, Kind.SEND)
        if row.queue_offset is not None
        and same_queue(row, commit)
        and (
            same_lane(row, commit)
            and began_before(row, commit)
            and not was_reset(rows, row, commit)
            if row.kind is Kind.DELIVER
            else row.outcome is Outcome.OK
            and before(row, commit)
            and not had_by_others(rows, row, commit)
        )
    }


def _passes(rows: Rows, config: Config, commit: Row, place: int) -> bool:
    return (
        commit.value is not None
        and place < commit.value
        and _is_its_own(rows, commit, place)
        and not finished(rows, commit, place)
        and not may_be_given_up_unseen(rows, config, commit, place)
        and not was_removed(rows, commit, place)
    )


def _is_its_own(rows: Rows, commit: Row, place: int) -> bool:
    """Does it lie at or after the start; or was it delivered by the incarnation, where nobody saw the start?"""
    delivered = [
        call
        for call in calls(rows)
        if call.queue_offset == place
        and began_before(call, commit)
        and same_incarnation(rows, call, commit)
    ]
    said = [
        other
        for other in took_effect(rows, Kind.COMMIT)
        if other.detail == "corrected"
        and began_before(other, commit)
        and same_incarnation(rows, other, commit)
    ]
    for moved in [*corrections(rows, commit), *said]:
        if place < (moved.value or 0) and not any(began_before(call, moved) for call in delivered):
            return False
    look_ups = [
        look
        for look in of(rows, Kind.FETCH_OFFSET)
        if began_before(look, commit) and same_incarnation(rows, look, commit)
    ]
    if any(not before(look, commit) for look in look_ups):
        return False
    answered = [look for look in look_ups if look.outcome is Outcome.OK]
    if any(
        look.outcome is Outcome.UNKNOWN or (look in answered and look.value is None)
        for look in look_ups
    ):
        return False
    starts = [row for row in [*adds(rows, commit), *answered] if row.value is not None]
    if not starts:
        return bool(delivered)
    start = max(starts, key=lambda row: row.seq_begin).value
    return start is not None and place >= start
