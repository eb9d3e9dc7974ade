"""GEN-1: once a lane was given to another member, who has committed on it, the former one's commits are refused.

Decisions where the page leaves room:

- Who commits without an incarnation works on nothing, and shows nothing.
- A client is in the generation of its last ADD on the lane: a commit of an incarnation before that is no former one's.
- The other's commit was accepted after the incarnation had begun if it began after that.
- A crash excuses from the ADD to the end of the commit.
"""

from __future__ import annotations

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import Kind, Outcome
from tests.definitions.words import (
    Rows,
    before,
    began_before,
    broker_died,
    end_of,
    of,
    same_client,
    same_incarnation,
    same_lane,
    took_effect,
)


def broken(rows: Rows, config: Config) -> bool:
    return config.counts("generations") > 0 and any(
        _is_former(rows, _given(rows, commit)[-1:], commit) for commit in _accepted(rows)
    )


def _accepted(rows: Rows) -> list[Row]:
    return [
        commit
        for commit in of(rows, Kind.COMMIT)
        if commit.outcome is Outcome.OK and commit.incarnation is not None
    ]


def _given(rows: Rows, commit: Row) -> list[Row]:
    """The ADDs by which its client was given the lane, so far."""
    return [
        add
        for add in took_effect(rows, Kind.ADD)
        if same_client(add, commit) and same_lane(add, commit) and began_before(add, commit)
    ]


def _is_former(rows: Rows, begins: Rows, commit: Row) -> bool:
    return any(
        same_incarnation(rows, add, commit)
        and not same_client(other, commit)
        and same_lane(other, commit)
        and began_before(add, other)
        and before(other, commit)
        and not _was_told(rows, commit)
        and not broker_died(rows, commit.broker, add.seq_begin, end_of(commit))
        for add in begins
        for other in _accepted(rows)
    )


def _was_told(rows: Rows, commit: Row) -> bool:
    return any(
        same_incarnation(rows, drop, commit) and began_before(drop, commit)
        for drop in took_effect(rows, Kind.DROP)
    )
