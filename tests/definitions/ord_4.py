"""ORD-4: a new owner starts at or before the lowest message that nobody of the group has finished.

Decisions where the page leaves room:

- What is finished, or may be given up unseen, is said in CMT-1.
- A message is known by a delivery to the group that began, or a send that was answered, before the new owner's call;
  not by a send alone where another group had the message before.
- Stored is what a look-up was answered with, or a commit that was answered, before the client's last look-up for the
  incarnation began, or, without one, before its ADD, or its first call; that look-up's own answer counts too.
- What a look-up was answered with counts up to the highest commit that began before it was answered, if there is one.
- A crash makes forgotten what was stored. Of a lane that an operator has begun to move nothing more is said.
"""

from __future__ import annotations

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import Kind, Outcome
from tests.definitions.words import (
    Rows,
    adds,
    before,
    began_before,
    broker_died,
    calls,
    end_of,
    finished,
    had_by_others,
    is_plain,
    may_be_given_up_unseen,
    of,
    offset,
    same_client,
    same_incarnation,
    same_lane,
    same_queue,
    took_effect,
    was_moved_before,
    was_removed,
)


def broken(rows: Rows, config: Config) -> bool:
    return config.subscription == "*" and any(
        _started_beyond(rows, config, call)
        for call in calls(rows)
        if call.incarnation is not None
        and not _had_before(rows, call)
        and not was_moved_before(rows, call._replace(seq_end=call.seq_begin))
    )


def _had_before(rows: Rows, call: Row) -> bool:
    return any(
        began_before(other, call) and same_incarnation(rows, other, call) for other in calls(rows)
    )


def _started_beyond(rows: Rows, config: Config, call: Row) -> bool:
    stored = max(_stored(rows, call), default=offset(call))
    return any(
        stored <= place < offset(call)
        and not finished(rows, call, place)
        and not may_be_given_up_unseen(rows, config, call, place)
        and not was_removed(rows, call, place)
        for place in _known(rows, call)
    )


def _known(rows: Rows, call: Row) -> set[int]:
    return {
        offset(row)
        for row in of(rows, Kind.DELIVER, Kind.SEND)
        if row.queue_offset is not None
        and (
            same_lane(row, call) and began_before(row, call)
            if row.kind is Kind.DELIVER
            else row.outcome is Outcome.OK
            and is_plain(row)
            and same_queue(row, call)
            and before(row, call)
            and not had_by_others(rows, row, call)
        )
    }


def _stored(rows: Rows, call: Row) -> list[int]:
    own = [
        look
        for look in of(rows, Kind.FETCH_OFFSET)
        if same_client(look, call)
        and same_lane(look, call)
        and began_before(look, call)
        and look.incarnation in (None, call.incarnation)
    ][-1:]
    begins = [*own, *adds(rows, call)[-1:], call]
    until = begins[0]
    return [
        _as_committed(rows, row)
        for row in of(rows, Kind.FETCH_OFFSET, Kind.COMMIT)
        if row.outcome is Outcome.OK
        and row.value is not None
        and same_lane(row, call)
        and (before(row, until) or (row in own and before(row, call)))
        and not broker_died(rows, call.broker, row.seq_begin, call.seq_begin)
    ]


def _as_committed(rows: Rows, row: Row) -> int:
    commits = [
        commit.value or 0
        for commit in took_effect(rows, Kind.COMMIT)
        if row.kind is Kind.FETCH_OFFSET
        and same_lane(commit, row)
        and commit.seq_begin < end_of(row)
    ]
    value = row.value or 0
    return min(value, max(commits, default=value))
