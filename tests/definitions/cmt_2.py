"""CMT-2: every committed value is the end of a finished batch, the start, or what was committed before; and in time.

Decisions where the page leaves room:

- A look-up counts that is the incarnation's and began after its ADD; the last answered one sets the start anew, one
  that found nothing stored to 0, where the group begins with the first message. What names no incarnation is nobody's.
- After the report of what a pull was told to go on at, that is what was committed.
- A batch that may have been given up unseen is one that was put back with its last message's retries used up, and not
  in manual mode, in a lane without dead letters before the commit; an acknowledged dead letter of a message that was
  delivered ends what lies up to it.
- A batch is late when the client has begun anything on the lane later than the delay, the interval and the slack after
  the call's end, or after the answer of the last commit of it that was refused, and no other commit of it has begun.
- A pause excuses that was not over when the call ended, and a broker's crash since the call began.
"""

from __future__ import annotations

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import Kind, Outcome
from tests.definitions.words import (
    MANUAL,
    Rows,
    acknowledges,
    adds,
    asks_again,
    before,
    began_before,
    calls,
    end_of,
    ended_by,
    is_about,
    is_told_to_go_on,
    is_used_up,
    may_be_untold,
    moved_in_its_life,
    of,
    of_its_client,
    offset,
    same_call,
    same_incarnation,
    took_effect,
    was_dropped,
)

NOTHING_STORED = -1
WORK = (Kind.DELIVER, Kind.PULL, Kind.COMMIT, Kind.LOCK)


def broken(rows: Rows, config: Config) -> bool:
    return config.subscription == "*" and (
        any(_is_odd(rows, config, commit) for commit in took_effect(rows, Kind.COMMIT))
        or any(
            _is_late(rows, config, call, work)
            for call in calls(rows)
            if adds(rows, call) and (call.outcome is Outcome.COMMIT or acknowledges(call))
            for work in of(rows, *WORK)
        )
    )


def _end(rows: Rows, call: Row) -> int:
    return max(offset(row) for row in calls(rows) if same_call(row, call)) + 1


def _start(rows: Rows, config: Config, commit: Row) -> list[int]:
    """Where the incarnation began, if anybody knows."""
    look_ups = [
        look
        for look in of(rows, Kind.FETCH_OFFSET)
        if same_incarnation(rows, look, commit) and began_before(look, commit)
    ]
    if any(look.outcome is Outcome.UNKNOWN or not before(look, commit) for look in look_ups):
        return []
    start = [add.value for add in adds(rows, commit)[-1:]]
    for look in look_ups:
        if look.outcome is Outcome.OK:
            start = [look.value]
        elif look.value == NOTHING_STORED:
            start = [0 if config.consume_from == "first" else None]
    return [value for value in start if value is not None]


def _is_odd(rows: Rows, config: Config, commit: Row) -> bool:
    start = _start(rows, config, commit)
    if not start or commit.value is None or moved_in_its_life(rows, commit):
        return False
    told = [
        other.value
        for other in took_effect(rows, Kind.COMMIT)
        if same_incarnation(rows, other, commit) and began_before(other, commit)
    ]
    ends = [
        _end(rows, row) if row.kind is Kind.DELIVER else offset(row) + 1
        for row in of(rows, Kind.DELIVER, Kind.DEAD_LETTER)
        if same_incarnation(rows, row, commit)
        and before(row, commit)
        and not was_dropped(rows, row)
        and _ends_a_batch(rows, config, row, commit)
    ]
    corrected = commit.detail == "corrected" or any(
        is_told_to_go_on(pull)
        and pull.value == commit.value
        and of_its_client(rows, pull, commit)
        and before(pull, commit)
        and not any(began_before(pull, add) for add in adds(rows, commit)[-1:])
        for pull in of(rows, Kind.PULL)
    )
    return not corrected and commit.value not in {*start, *told[-1:], *ends}


def _ends_a_batch(rows: Rows, config: Config, row: Row, commit: Row) -> bool:
    if row.kind is Kind.DEAD_LETTER:
        had = [
            call for call in calls(rows) if is_about(rows, row, call) and began_before(call, row)
        ]
        mode = row.commit_mode or (had[-1].commit_mode if had else MANUAL)
        is_last = all(_end(rows, call) == offset(row) + 1 for call in had[-1:])
        return row.outcome is Outcome.OK and mode != MANUAL and is_last
    unseen = (
        is_used_up(config, row)
        and asks_again(row)
        and row.commit_mode != MANUAL
        and offset(row) + 1 == _end(rows, row)
        and may_be_untold(rows, commit)
    )
    may_finish = row.commit_mode is None and row.outcome in (Outcome.SUCCESS, Outcome.ROLLBACK)
    return row.outcome is Outcome.COMMIT or acknowledges(row) or may_finish or unseen


def _is_late(rows: Rows, config: Config, call: Row, work: Row) -> bool:
    if not before(call, work) or not same_incarnation(rows, call, work):
        return False
    told = [
        commit
        for commit in of(rows, Kind.COMMIT)
        if same_incarnation(rows, commit, call)
        and before(call, commit)
        and commit.seq_begin < work.seq_begin
        and (commit.value or 0) >= _end(rows, call)
    ]
    refused = [
        commit.ended_us or 0
        for commit in told
        if commit.outcome is Outcome.REFUSED and before(commit, work)
    ]
    since_us = max([call.ended_us or 0, *refused])
    time_ms = config.persist_first_ms + config.persist_ms + config.schedule_slack_ms
    return (
        work.started_us - since_us > time_ms * 1_000
        and len(refused) == len(told)
        and not moved_in_its_life(rows, work)
        and not any(
            same_incarnation(rows, drop, work) and began_before(drop, work)
            for drop in took_effect(rows, Kind.DROP)
        )
        and not any(
            (row.client_id == call.client_id or row.broker == call.broker)
            and began_before(row, work)
            and not (ended_by(row, end_of(call)) if row.kind is Kind.PAUSE else before(row, call))
            for row in of(rows, Kind.PAUSE, Kind.CRASH)
        )
    )
