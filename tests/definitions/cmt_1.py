"""CMT-1: no commit passes an unfinished message at or after the incarnation's start.

Decisions where the page leaves room:

- Finished is a message whose call of auto mode ended with success, commit or rollback, or of manual mode with commit;
  that was given up in auto mode (a dead letter is of the mode of its message's last call, where it says none); or that
  was taken or given up in manual mode and not rolled back when something later of its incarnation was finished.
  A message that was finished once stays so. What ended after its lane had been dropped finished nothing.
- Where nobody says the mode, a result that finishes in one of the modes may have finished.
- A message may have been given up unseen when its retries were used up (or nobody told the counter, and there is a
  limit) and it was put back.
- A message is known by a delivery or by the answer of a send, either begun before the commit, and since an
  operator last moved the lane's offset.
- A commit is "after a reset" unless its incarnation was added since: before, its client may have yet to be told.
- A pull was told to go on elsewhere where its answer has the code 21.
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
    is_correction,
    may_be_given_up_unseen,
    moved_in_its_life,
    of,
    offset,
    same_client,
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
        and began_before(row, commit)
        and not was_reset(rows, row._replace(group=commit.group), commit)
        and (row.kind is Kind.DELIVER or row.outcome is Outcome.OK)
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
    for pull in corrections(rows, commit):
        if place < (pull.value or 0) and not any(began_before(call, pull) for call in delivered):
            return False
    look_ups = [
        look
        for look in of(rows, Kind.FETCH_OFFSET)
        if began_before(look, commit)
        and same_lane(look, commit)
        and same_client(look, commit)
        and look.incarnation in (None, commit.incarnation)
        and not any(began_before(look, add) for add in adds(rows, commit)[-1:])
    ]
    if any(not before(look, commit) or look.outcome is Outcome.UNKNOWN for look in look_ups[-1:]):
        return False
    starts = adds(rows, commit) + [look for look in look_ups if look.outcome is Outcome.OK]
    if not starts:
        return bool(delivered)
    start = max(starts, key=lambda row: row.seq_begin).value
    return start is not None and place >= start
