"""LSE-3: a client starts a listener call only under a lease that was granted at most its own limit ago.

Decisions where the page leaves room:

- A grant is good as long as neither a refusal of a newer request that was answered after it, nor an unlock that began
  after its answer, nor its age took it away; one good grant is enough.
- What its client knows ends with its death, and with the end of a departure if it came again after that. Where no ADD
  of the call's incarnation follows nothing is claimed, unless nothing was answered before either; nor where a request
  from before was granted after that.
- A departure without an end is over as it begins, but may go on: what was known before may be known still.
- Nor is anything claimed where its client joined, or added something, in the midst of a departure.
- Without a grant the lane has no lease if the ADD of the call's incarnation was seen, or a refusal, or an unlock.
- Where the client has added the lane anew, under another name, that ADD alone shows nothing.
- A pause silences that was not over when the last answer came, or the unlock was sent, or, without both, at the ADD.
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
    calls,
    end_of,
    of,
    same_client,
    same_lane,
    took_effect,
)


def broken(rows: Rows, config: Config) -> bool:
    return any(
        not any(began_before(step, call) for step in of(rows, Kind.CLOCK_STEP))
        and _has_no_lease(rows, config, call)
        for call in calls(rows)
    )


def _own(row: Row, call: Row) -> bool:
    return same_client(row, call) and same_lane(row, call)


def _ends(rows: Rows, call: Row) -> list[Row]:
    """The client's deaths before the call, and its departures from the group that were over."""
    return [
        row
        for row in took_effect(rows, Kind.CRASH, Kind.LEAVE)
        if same_client(row, call)
        and (row.kind is Kind.CRASH or row.group == call.group)
        and _over(row) < call.seq_begin
    ]


def _over(end: Row) -> int:
    return end.seq_begin if end.seq_end is None else end.seq_end


def _came_again(rows: Rows, leave: Row, call: Row) -> bool:
    return any(
        (row.client_id, row.group) == (call.client_id, call.group)
        and _over(leave) < row.seq_begin
        and began_before(row, call)
        for row in took_effect(rows, Kind.ADD, Kind.JOIN)
    )


def _has_no_lease(rows: Rows, config: Config, call: Row) -> bool:
    answers = [
        lock
        for lock in of(rows, Kind.LOCK)
        if _own(lock, call)
        and before(lock, call)
        and (lock.outcome is Outcome.OK or (lock.outcome is Outcome.REFUSED and not lock.code))
    ]
    newest = [
        row for row in took_effect(rows, Kind.ADD) if _own(row, call) and began_before(row, call)
    ]
    add = [row for row in adds(rows, call)[-1:] if row is newest[-1]]
    ends = [
        end for end in _ends(rows, call) if end.kind is Kind.CRASH or _came_again(rows, end, call)
    ]
    if ends:
        last = max(ends, key=_over)
        add = [row for row in add if began_before(last, row) or not answers]
        goes_on = [
            lock
            for lock in answers
            if lock.outcome is Outcome.OK and began_before(lock, last) and not before(lock, last)
        ]
        if goes_on and not add:
            return False
        unlocks = [row for row in took_effect(rows, Kind.UNLOCK) if _own(row, call)]
        known = [*answers, *(unlock for unlock in unlocks if began_before(unlock, call))]
        if last.seq_end is None and known and began_before(max(known, key=_moment), last):
            return False
        answers = [
            lock for lock in answers if began_before(last, lock) and _over(last) < end_of(lock)
        ]
    if any(_holds(rows, config, answers, lock, call) for lock in answers):
        return False
    lost = [
        row
        for row in [*answers, *took_effect(rows, Kind.UNLOCK)]
        if _own(row, call)
        and began_before(row, call)
        and not any(began_before(row, end) or _moment(row) < _over(end) for end in ends)
        and (row.outcome is not Outcome.REFUSED or _was_heard(config, row, call))
    ]
    since = [max(lost, key=_moment)] if lost else add
    paused = any(
        pause.client_id == call.client_id
        and began_before(pause, call)
        and not any(before(pause, row) or end_of(pause) < _moment(row) for row in since)
        for pause in of(rows, Kind.PAUSE)
    )
    came_early = any(
        (row.client_id, row.group) == (call.client_id, call.group)
        and same_client(leave, call)
        and leave.group == call.group
        and began_before(leave, row)
        and row.seq_begin < _over(leave)
        and began_before(row, call)
        for leave in took_effect(rows, Kind.LEAVE)
        for row in took_effect(rows, Kind.ADD, Kind.JOIN)
    )
    return bool(lost or add) and not paused and not came_early


def _moment(row: Row) -> int:
    """When it told the client whether it has the lease: an unlock when it was sent."""
    return row.seq_begin if row.kind is Kind.UNLOCK else end_of(row)


def _was_heard(config: Config, refusal: Row, call: Row) -> bool:
    """Was it answered before the client looked at its lease?"""
    return call.started_us - (refusal.ended_us or 0) > config.guard_slack_ms * 1_000


def _holds(rows: Rows, config: Config, answers: Rows, grant: Row, call: Row) -> bool:
    age_ms = (call.started_us - (grant.ended_us or 0)) // 1_000
    refused = any(
        lock.outcome is Outcome.REFUSED
        and began_before(grant, lock)
        and end_of(grant) < end_of(lock)
        and _was_heard(config, lock, call)
        for lock in answers
    )
    given_back = any(
        _own(unlock, call) and before(grant, unlock) and began_before(unlock, call)
        for unlock in took_effect(rows, Kind.UNLOCK)
    )
    return (
        grant.outcome is Outcome.OK
        and age_ms <= config.client_lease_ms + config.guard_slack_ms
        and not refused
        and not given_back
    )
