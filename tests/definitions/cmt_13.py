"""CMT-13: whoever gives a lane back has reported all that it finished there before.

Decisions where the page leaves room:

- Finished is a batch whose call acknowledged in auto mode, or ended in COMMIT in whatever mode, after the incarnation's
  ADD and, by more than the moment that its client needs to take it up, before its DROP or, without one, the unlock.
- Reported is what a commit that was not refused before the unlock tells, whenever it began in that incarnation's time.
- An unlock that names no incarnation is of the one that its client has added or dropped, in that life, and has not
  given back, if there is one only, and if that was dropped, or its client is shutting down. Only the first unlock of
  an incarnation is asked, and nothing of what was added anew under its name.
- A commit without a value may have reported what had been finished when it began.
"""

from __future__ import annotations

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import Kind, Outcome
from tests.definitions.words import (
    Rows,
    acknowledges,
    adds,
    before,
    began_before,
    between,
    calls,
    is_correction,
    is_leaving,
    life,
    moved_in_its_life,
    of,
    of_its_client,
    offset,
    same_client,
    same_incarnation,
    same_lane,
    same_name,
    took_effect,
)


def broken(rows: Rows, config: Config) -> bool:
    return any(
        _was_not_told(rows, config, add, unlock)
        for unlock in took_effect(rows, Kind.UNLOCK)
        for given_back in _given_back(rows, unlock)
        for add in adds(rows, given_back)[-1:]
    )


def _drops(rows: Rows, add: Row, until: Row) -> list[Row]:
    return [
        drop
        for drop in took_effect(rows, Kind.DROP)
        if began_before(add, drop)
        and began_before(drop, until)
        and (drop.incarnation is None or same_incarnation(rows, drop, add))
        and same_client(drop, add)
        and same_lane(drop, add)
    ]


def _given_back(rows: Rows, unlock: Row) -> list[Row]:
    """What names the incarnation that is given back, for the first time, if anybody knows which one that is."""
    left = _may_be_given_back(rows, unlock)
    if len(left) > 1:
        return []
    return [row for row in left if row.kind is not Kind.ADD or is_leaving(rows, unlock, unlock)]


def _settled_by(rows: Rows, unlock: Row) -> list[Row]:
    """Of what nothing more is asked: what it gives back or, where it may be one of several, all of these."""
    left = _may_be_given_back(rows, unlock)
    return left if len(left) > 1 else _given_back(rows, unlock)


def _may_be_given_back(rows: Rows, unlock: Row) -> list[Row]:
    """What names each incarnation that it may be, and that no unlock before may have been of."""
    earlier = [
        row
        for other in took_effect(rows, Kind.UNLOCK)
        if same_client(other, unlock) and same_lane(other, unlock) and began_before(other, unlock)
        for row in _settled_by(rows, other)
    ]
    if unlock.incarnation is not None:
        given_up = [unlock]
    else:
        ends = [
            row
            for row in took_effect(rows, Kind.DROP, Kind.ADD)
            if same_client(row, unlock)
            and same_lane(row, unlock)
            and began_before(row, unlock)
            and life(rows, row) == life(rows, unlock)
            and not any(
                same_name(add, row) and between(row, add, unlock)
                for add in took_effect(rows, Kind.ADD)
            )
        ]
        given_up = list({row.incarnation: row for row in ends}.values())
    return [row for row in given_up if not any(same_incarnation(rows, row, one) for one in earlier)]


def _was_not_told(rows: Rows, config: Config, add: Row, unlock: Row) -> bool:
    ends = [*_drops(rows, add, unlock), unlock]
    asked = [
        commit
        for commit in of(rows, Kind.COMMIT)
        if of_its_client(rows, commit, add)
        and began_before(add, commit)
        and began_before(commit, unlock)
    ]
    told = [
        commit
        for commit in asked
        if not (commit.outcome is Outcome.REFUSED and before(commit, unlock))
    ]
    owed = [
        call
        for call in calls(rows)
        if same_incarnation(rows, call, add)
        and (call.outcome is Outcome.COMMIT or acknowledges(call))
        and _was_taken_up(config, call, ends[0])
        and not any(commit.value is None and before(call, commit) for commit in told)
    ]
    silent = moved_in_its_life(rows, unlock._replace(incarnation=add.incarnation)) or any(
        is_correction(rows, commit) for commit in asked
    )
    reported = max((commit.value or 0 for commit in told), default=0)
    return not silent and any(offset(call) >= reported for call in owed)


def _was_taken_up(config: Config, call: Row, end: Row) -> bool:
    moment_us = end.started_us - (call.ended_us or 0)
    return before(call, end) and moment_us >= config.guard_slack_ms * 1_000
