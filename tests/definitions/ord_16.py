"""ORD-16: no worker begins to work on a lane while a call of another worker of its group still runs there.

Decisions where the page leaves room:

- Two processes of one client id are two where the client itself told both. A life ends with a crash, or with the
  return (JOIN, ADD) to a group that was left.
- The call that still runs is of any other worker, not only of the one whose call is the one before. A call of which
  nobody saw how it ended is the call before another's all the same.
- A call ended as CUT is not judged either: a shutdown or a crash ended it, whoever recorded that.
- A worker was given the lane with its last ADD there up to its call, of whatever incarnation, or with the last LOCK of
  its client that was granted and began before that ADD; what began earlier and was not over by then counts as since.
- An UNLOCK counts that began before the ADD, also after the LOCK was answered (before the call, where
  nobody saw an ADD). An answered one has reached the broker by its answer. What held it up is a fault of its link, or
  a pause of its client or broker, within the bound for delays; once that is over, it arrives within the bound, or is
  held up again.
- An epoch is new where a row shows a higher one of that broker than all rows before it do; the second call may show it.
- A client that has come again (JOIN, ADD) before its call began is not leaving, unless its LEAVE still went on then.
- What clocks may be apart is nothing here: no alphabet names a bound.
"""

from __future__ import annotations

from specs.history.row import Row
from specs.plan.config import LOCK_WAIT_MS, ROCKETMQ, Config
from specs.vocabulary import Kind, Level, Outcome
from tests.definitions.words import (
    Rows,
    before,
    began_before,
    between,
    calls,
    died_between,
    is_leaving,
    is_of_link,
    latest_us,
    life,
    of,
    same_call,
    same_lane,
    took_effect,
)

ONE_SECOND_MS = 1_000


def broken(rows: Rows, config: Config) -> bool:
    return _is_orderly(config) and any(
        _begins_to_work(rows, second)
        and _still_runs(first, second)
        and not _same_worker(rows, first, second)
        and _is_certain(rows, config, first, second)
        and not _is_excused(rows, config, first, second)
        for first in calls(rows)
        for second in calls(rows)
    )


def _is_orderly(config: Config) -> bool:
    told = not config.untold & {"mode", "message_model"}
    return told and (config.mode, config.message_model) == ("orderly", "clustering")


def _same_worker(rows: Rows, first: Row, second: Row) -> bool:
    """Are both of one life of one process of one client? Only what the client told tells its processes apart."""
    known = first.process is not None and second.process is not None
    by_itself = first.level is Level.CLIENT and second.level is Level.CLIENT
    return (
        first.client_id == second.client_id
        and not (known and by_itself and first.process != second.process)
        and life(rows, first) == life(rows, second)
    )


def _begins_to_work(rows: Rows, call: Row) -> bool:
    """Is the last call on the lane that began before it another worker's?"""
    earlier = [
        other
        for other in calls(rows)
        if same_lane(other, call) and began_before(other, call) and not same_call(other, call)
    ]
    return bool(earlier) and not _same_worker(
        rows, max(earlier, key=lambda row: row.seq_begin), call
    )


def _still_runs(first: Row, second: Row) -> bool:
    """Did the first one run on the lane when the second one began, and did somebody see how it ended?"""
    return (
        same_lane(first, second)
        and not same_call(first, second)
        and began_before(first, second)
        and not before(first, second)
        and first.seq_end is not None
        and first.outcome not in (Outcome.UNKNOWN, Outcome.CUT)
    )


def _is_certain(rows: Rows, config: Config, first: Row, second: Row) -> bool:
    """Was the first call young enough when the second one began and, without leases, its lane handed on?"""
    age_us = second.started_us - first.started_us
    if "broker_lease_ms" in config.untold:
        return age_us <= ONE_SECOND_MS * 1_000 and _handed_on(rows, first, second)
    return "client_lease_ms" not in config.untold and age_us <= _lasts_ms(config) * 1_000


def _lasts_ms(config: Config) -> int:
    """How old a call may be while its lease certainly lasts."""
    waits_ms = LOCK_WAIT_MS if config.system == ROCKETMQ else 0
    return config.broker_lease_ms - config.client_lease_ms - config.guard_slack_ms - waits_ms


def _handed_on(rows: Rows, first: Row, second: Row) -> bool:
    """Is a DROP the last that was told of the first one's worker there, and the second one's ADD after it?"""
    told = [
        row
        for row in took_effect(rows, Kind.ADD, Kind.DROP)
        if _same_worker(rows, row, first) and same_lane(row, first) and began_before(row, second)
    ]
    added = _added(rows, second)
    return (
        bool(told)
        and told[-1].kind is Kind.DROP
        and added is not None
        and began_before(told[-1], added)
    )


def _is_excused(rows: Rows, config: Config, first: Row, second: Row) -> bool:
    stepped = any(began_before(step, second) for step in of(rows, Kind.CLOCK_STEP))
    anew = any(
        join.client_id == first.client_id and between(first, join, second)
        for join in took_effect(rows, Kind.JOIN)
    )
    ends = died_between(rows, first, second) or _leaves(rows, first, second)
    disturbed = any(_was_disturbed(rows, call, second) for call in (first, second))
    return stepped or anew or ends or disturbed or _may_have_unlocked(rows, config, first)


def _leaves(rows: Rows, call: Row, moment: Row) -> bool:
    """Was the call's client leaving: since before that moment, and without having come again, or while it called?"""
    return is_leaving(rows, call, moment) or any(
        (leave.client_id, leave.group) == (call.client_id, call.group)
        and began_before(leave, moment)
        and not before(leave, call)
        for leave in took_effect(rows, Kind.LEAVE)
    )


def _added(rows: Rows, call: Row) -> Row | None:
    """The last ADD of the lane by the call's worker, where somebody saw one."""
    added = [
        add
        for add in took_effect(rows, Kind.ADD)
        if _same_worker(rows, add, call) and same_lane(add, call) and began_before(add, call)
    ]
    return added[-1] if added else None


def _given(rows: Rows, call: Row) -> Row | None:
    """How the call's worker was given the lane: by a LOCK before its ADD, or by the ADD; None where nobody saw one."""
    added = _added(rows, call)
    granted = [
        lock
        for lock in of(rows, Kind.LOCK)
        if lock.outcome is Outcome.OK
        and lock.client_id == call.client_id
        and same_lane(lock, call)
        and added is not None
        and began_before(lock, added)
    ]
    return granted[-1] if granted else added


def _was_disturbed(rows: Rows, call: Row, until: Row) -> bool:
    """Was its client paused, anything injected, or a broker disturbed, since its lane was given to it, or ever?"""
    given = _given(rows, call)
    return _has_new_epoch(rows, given, until) or any(
        (row.kind is Kind.FAULT or row.broker is not None or _pauses(row, call))
        and began_before(row, until)
        and not (given and before(row, given))
        for row in of(rows, Kind.PAUSE, Kind.FAULT, Kind.CRASH)
    )


def _pauses(row: Row, call: Row) -> bool:
    return row.kind is Kind.PAUSE and row.client_id == call.client_id


def _has_new_epoch(rows: Rows, given: Row | None, until: Row) -> bool:
    """Does a row since then show a higher epoch of its broker than all that were shown before it?"""
    return any(
        row.seq_begin <= until.seq_begin
        and not (given and before(row, given))
        and (earlier := _earlier_epochs(rows, row))
        and max(earlier) < (row.broker_epoch or 0)
        for row in rows
    )


def _earlier_epochs(rows: Rows, row: Row) -> list[int]:
    return [
        other.broker_epoch
        for other in rows
        if other.broker == row.broker
        and other.broker_epoch is not None
        and began_before(other, row)
    ]


def _may_have_unlocked(rows: Rows, config: Config, call: Row) -> bool:
    """May an UNLOCK that its client sent before the lane was given to it have reached the broker after that?"""
    added, given = _added(rows, call), _given(rows, call)
    return any(
        unlock.client_id == call.client_id
        and same_lane(unlock, call)
        and began_before(unlock, added or call)
        and (given is None or _may_arrive_after(rows, config, unlock, given))
        for unlock in took_effect(rows, Kind.UNLOCK)
    )


def _may_arrive_after(rows: Rows, config: Config, unlock: Row, given: Row) -> bool:
    if unlock.outcome is Outcome.OK:
        return not before(unlock, given)
    latest = latest_us(config, unlock)
    for row in of(rows, Kind.PAUSE, Kind.FAULT):
        if _holds_up(row, unlock) and not before(row, unlock) and row.started_us <= latest:
            if row.ended_us is None:
                return True
            latest = max(latest, row.ended_us + config.delay_bound_ms * 1_000)
    return latest >= given.started_us


def _holds_up(row: Row, request: Row) -> bool:
    """Is it a pause of either end, or a fault of their link that keeps requests back?"""
    if row.kind is Kind.PAUSE:
        return row.client_id == request.client_id or row.broker == request.broker
    keeps = (row.detail or "").split()[:1] not in (["cut"], ["lose"], ["drop_next"])
    return keeps and is_of_link(row, request.client_id, request.broker)
