"""CMT-6: once a lane is dropped, its incarnation reports no more than it had finished by then.

Decisions where the page leaves room:

- The drop is the incarnation's first one after its last ADD.
- Finished by then is what a result that finishes in its mode, or may where nobody says the mode, ended by the drop, and
  what a dead letter that was acknowledged by then gave up; the highest of these counts, and what was committed.
- Nothing is claimed where no ADD was seen. A look-up counts that began after it, and before the drop; the last one of
  them that was answered sets the start. One that names no incarnation and was answered may have set it.
- What was suspended by the drop, not in manual mode, with its retries used up may have been given up, in a lane that
  had shown no dead letter when the commit began.
"""

from __future__ import annotations

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import Kind, Outcome
from tests.definitions.words import (
    MANUAL,
    Rows,
    adds,
    asks_again,
    before,
    began_before,
    ended_well,
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

NOTHING_STORED = -1


def broken(rows: Rows, config: Config) -> bool:
    return config.subscription == "*" and any(
        commit.value > reached
        and not is_correction(rows, commit)
        and not moved_in_its_life(rows, commit)
        and not _filters(rows, commit)
        for commit in took_effect(rows, Kind.COMMIT)
        if commit.value is not None
        for drop in _drops(rows, commit)[:1]
        for reached in _reached(rows, config, drop, commit)
    )


def _drops(rows: Rows, commit: Row) -> list[Row]:
    return [
        drop
        for drop in took_effect(rows, Kind.DROP)
        if same_incarnation(rows, drop, commit) and began_before(drop, commit)
    ]


def _filters(rows: Rows, commit: Row) -> bool:
    return any(
        join.group == commit.group
        and join.view is not None
        and not join.view.endswith("*")
        and began_before(join, commit)
        for join in took_effect(rows, Kind.JOIN)
    )


def _reached(rows: Rows, config: Config, drop: Row, late: Row) -> list[int]:
    """How far it had come by the drop, if anybody knows."""
    look_ups = [
        look
        for look in of(rows, Kind.FETCH_OFFSET)
        if of_its_client(rows, look, drop)
        and began_before(look, drop)
        and not any(began_before(look, add) for add in adds(rows, drop)[-1:])
    ]
    unknown = any(
        look.outcome is Outcome.UNKNOWN
        or not before(look, drop)
        or (look.outcome is Outcome.OK and look.value is None)
        or (look.value == NOTHING_STORED and config.consume_from != "first")
        for look in look_ups
    )
    own = [look.value for look in look_ups if look.outcome is Outcome.OK and look.incarnation]
    others = [look.value for look in look_ups if look.outcome is Outcome.OK]
    start = [*(add.value for add in adds(rows, drop)[-1:]), *own][-1:]
    if unknown or start in ([], [None]) or not adds(rows, drop):
        return []
    done = [
        offset(row) + 1
        for row in of(rows, Kind.DELIVER, Kind.DEAD_LETTER)
        if same_incarnation(rows, row, drop)
        and before(row, drop)
        and (
            row.outcome is Outcome.OK
            if row.kind is Kind.DEAD_LETTER
            else ended_well(row) or _may_be_given_up(rows, config, row, late)
        )
    ]
    told = [
        commit.value
        for commit in took_effect(rows, Kind.COMMIT)
        if same_incarnation(rows, commit, drop) and began_before(commit, drop)
    ]
    return [max(value for value in [*start, *others, *done, *told] if value is not None)]


def _may_be_given_up(rows: Rows, config: Config, call: Row, late: Row) -> bool:
    given_up = asks_again(call) and call.commit_mode != MANUAL and is_used_up(config, call)
    return given_up and may_be_untold(rows, late)
