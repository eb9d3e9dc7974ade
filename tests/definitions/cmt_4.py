"""CMT-4: within an incarnation, commits that do not overlap in time never go back, without a reset.

Decisions where the page leaves room:

- A look-up clears once it is over, unless it failed: of one without an answer nobody knows what its client adopts.
- A correction clears as it is committed.
- A pull was told to go on elsewhere by the code 21; ahead, where nothing was found; or back, where no code is told.
- A commit that travels with a pull is compared with a one-way commit that was sent at least the slack before.
"""

from __future__ import annotations

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import Kind, Outcome
from tests.definitions.words import (
    Rows,
    before,
    began_before,
    is_told_to_go_on,
    may_be_adopted,
    moved_in_its_life,
    of,
    same_client,
    same_incarnation,
    same_lane,
    took_effect,
)


def broken(rows: Rows, config: Config) -> bool:
    return any(
        before(first, second)
        and same_incarnation(rows, first, second)
        and None not in (first.value, second.value)
        and (second.value or 0) < (first.value or 0)
        and not _is_old_news(config, first, second)
        and not _is_cleared(rows, first, second)
        and not moved_in_its_life(rows, second)
        for first in took_effect(rows, Kind.COMMIT)
        for second in took_effect(rows, Kind.COMMIT)
    )


def _is_old_news(config: Config, first: Row, second: Row) -> bool:
    """Does the second travel with a pull, and had the timer reported the first just before?"""
    ago_us = second.started_us - first.started_us
    one_way = first.outcome is Outcome.SENT and first.view != "pull"
    return second.view == "pull" and one_way and ago_us < config.schedule_slack_ms * 1_000


def _is_cleared(rows: Rows, first: Row, second: Row) -> bool:
    return any(
        same_client(row, second)
        and same_lane(row, second)
        and row.incarnation in (None, second.incarnation)
        and (
            _is_correction(rows, row) and first.seq_begin <= row.seq_begin <= second.seq_begin
            if row.kind is Kind.COMMIT
            else may_be_adopted(row) and not before(row, first) and before(row, second)
        )
        for row in of(rows, Kind.FETCH_OFFSET, Kind.COMMIT)
    )


def _is_correction(rows: Rows, commit: Row) -> bool:
    """A commit of what a pull was told: the first one, and those that repeat it before the client reports another."""
    if commit.outcome is Outcome.REFUSED:
        return False
    return commit.detail == "corrected" or any(
        is_told_to_go_on(pull)
        and pull.value == commit.value
        and same_client(pull, commit)
        and same_lane(pull, commit)
        and before(pull, commit)
        and (pull.incarnation is None or same_incarnation(rows, pull, commit))
        and not any(
            told.value == commit.value != other.value
            and same_client(told, commit)
            and same_client(other, commit)
            and same_lane(told, commit)
            and same_lane(other, commit)
            and before(pull, told)
            and began_before(told, other)
            and began_before(other, commit)
            for told in took_effect(rows, Kind.COMMIT)
            for other in took_effect(rows, Kind.COMMIT)
        )
        for pull in of(rows, Kind.PULL)
    )
