"""RTY-6 over columns: which calls are the next of a ready lane, and which call of another lane kept each waiting.

All is said of all calls at once; what a client did besides is looked up by its lanes, as of the call.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial

import numpy as np

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Planted, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.groupings import CLIENTS
from specs.facts.lanes import LEAST_MS, MOST_MS
from specs.facts.presence import have_threads, last_crash, were_there
from specs.facts.ready import Lanes, Leases, Ready, ready_calls
from specs.facts.rows import Rows
from specs.facts.segments import (
    MS,
    NEVER,
    NONE,
    NOWHERE,
    Ints,
    Mask,
    Timeline,
    by_time,
    chosen,
    dense,
    first_above,
    first_fitting,
    first_of_each,
    highest_so_far,
    pairs,
)
from specs.history.row import Row
from specs.vocabulary import LISTENER_SUSPENDS, CommitMode, Kind, Outcome


def kernel(rows: Rows, findings: Findings) -> None:
    """Of the calls of ready lanes, those that began after another lane had become busy for long."""
    lanes = rows.shared(Lanes)
    if not len(lanes.adds) or not len(lanes.calls):
        return
    busy = Busy(rows, lanes)
    if not len(busy.calls):
        return
    ready = rows.shared(ready_calls)
    ready = ready.only(busy.may_matter(ready))
    other = busy.of(ready)
    ready, other = ready.only(other != NOWHERE), other[other != NOWHERE]
    slack_us = rows.config("schedule_slack_ms", ready.late) * MS
    until = np.maximum(ready.ready_us, rows.started[other]) + slack_us
    threads = have_threads(rows, lanes.client, ready.late)
    few = np.flatnonzero(~threads)
    begin = np.maximum(ready.ready_us, rows.ended[other])[few]
    until[few] = begin + slack_us[few]
    late = ready.late[few]
    threads[few] = _rests(rows, other[few], late, until[few])
    few, late, begin = (each[threads[few]] for each in (few, late, begin))
    threads[few] = _has_a_thread(rows, lanes, late, begin)
    needed_us = (
        np.minimum(until, rows.started[ready.late])
        - rows.config("client_lease_ms", ready.late) * MS
    )
    outlives, renewal = rows.shared(Leases).outlive(ready.lock, ready.last, ready.late, needed_us)
    there = were_there(rows, lanes.client, ready.late, rows.begin[ready.add], ready.ready_us)
    counts = threads & outlives & there
    findings.at_stake(ready.late[counts])
    broken = counts & (rows.started[ready.late] > until)
    evidence = (ready.add, ready.lock, renewal, ready.pull, ready.before, other, ready.late)
    findings.violated(*(each[broken] for each in evidence))


class Busy:
    """Calls that keep their lane for longer than the bound, client by client and by begin."""

    def __init__(self, rows: Rows, lanes: Lanes) -> None:
        self.rows, self.lanes = rows, lanes
        calls = lanes.calls
        free = free_us(rows, calls)
        long = free > rows.started[calls] + rows.config("schedule_slack_ms", calls) * MS
        calls, free = calls[long], free[long]
        order = by_time(lanes.client[calls], rows.begin[calls])
        self.calls, self.free = calls[order], free[order]
        self.client = lanes.client[self.calls]
        self._line = Timeline(self.client, rows.begin[self.calls])
        self._longest = self.free[highest_so_far(self.client, self.free)]

    def may_matter(self, ready: Ready) -> Mask:
        """Did any call of the client that began before keep its lane until after the bound?"""
        last = self._line.last_before(self.lanes.client[ready.late], self.rows.begin[ready.late])
        return chosen(self._longest, last, NONE) > self._until(ready)

    def _until(self, ready: Ready) -> Ints:
        return ready.ready_us + self.rows.config("schedule_slack_ms", ready.late) * MS

    def of(self, ready: Ready) -> Ints:
        """The call that kept its lane longest after the bound, else the first one that still runs; or NOWHERE."""
        rows, lanes, late = self.rows, self.lanes, ready.late
        now = rows.begin[late]
        crashed = last_crash(rows, lanes.client, late)
        since = np.maximum(lanes.reset_before(late, now), crashed) + 1
        start, stop = self._line.between(lanes.client[late], since, now)
        found = self._longest_of(ready, start, stop)
        waits = np.flatnonzero((found == NOWHERE) & (rows.started[late] > self._until(ready)))
        found[waits] = self._first_running(late[waits], start[waits], stop[waits])
        return chosen(self.calls, found, NOWHERE)

    def _longest_of(self, ready: Ready, start: Ints, stop: Ints) -> Ints:
        """Of each one's places of other lanes whose call is over: which kept its lane longest after the bound?"""
        late, until = ready.late, self._until(ready)
        over = np.where(self.rows.end[self.calls] < NEVER, self.free, NONE)
        longest = over[highest_so_far(self.client, over)]
        reached = first_above(self.client, longest, self.lanes.client[late], until)
        found = np.full(len(late), NOWHERE, np.int64)
        for index, place in pairs(np.maximum(start, reached), stop):
            fits = self._of_another_lane(late[index], place) & (self.free[place] > until[index])
            fits &= self.rows.end[self.calls[place]] < self.rows.begin[late[index]]
            index, place = index[fits], place[fits]
            order = np.lexsort((place, -self.free[place], index))
            best = order[first_of_each(*dense(index[order]))]
            found[index[best]] = place[best]
        return found

    def _first_running(self, late: Ints, start: Ints, stop: Ints) -> Ints:
        """Of each one's places of other lanes the first whose call still runs, begun more than the bound before."""
        rows, end = self.rows, self.rows.end[self.calls]
        latest = end[highest_so_far(self.client, end)]
        start = np.maximum(
            start, first_above(self.client, latest, self.lanes.client[late], rows.begin[late])
        )
        slack_us = rows.config("schedule_slack_ms", late) * MS

        def runs(index: Ints, place: Ints) -> Mask:
            call, then = self.calls[place], late[index]
            long = rows.started[call] + slack_us[index] < rows.started[then]
            found: Mask = self._of_another_lane(then, place) & (end[place] > rows.begin[then])
            return found & long

        return first_fitting(start, stop, runs)

    def _of_another_lane(self, late: Ints, place: Ints) -> Mask:
        found: Mask = self.lanes.lane[self.calls[place]] != self.lanes.lane[late]
        return found


def free_us(rows: Rows, where: Ints) -> Ints:
    """Until when each call keeps its lane, the suspend time included; NEVER for one that did not end."""
    again = _asks_again(rows, where) & ~_last_try(rows, where)
    asked = rows.number("suspend_ms")[where]
    rest = (
        np.clip(np.where(asked < 0, rows.config("suspend_ms", where), asked), LEAST_MS, MOST_MS)
        * MS
    )
    ended = rows.ended[where]
    return np.where(
        rows.end[where] == NEVER, NEVER, ended + np.where(again & (ended != NEVER), rest, 0)
    )


def _asks_again(rows: Rows, where: Ints) -> Mask:
    manual = rows.text("commit_mode")[where] == rows.code("commit_mode", CommitMode.MANUAL)
    again: Mask = rows.ended_as(*LISTENER_SUSPENDS)[where] | (
        rows.ended_as(Outcome.ROLLBACK)[where] & manual
    )
    return again


def _last_try(rows: Rows, where: Ints) -> Mask:
    """Was it a suspension after which the message is given up?"""
    limit, times = rows.config("max_reconsume_times", where), rows.number("reconsume_times")[where]
    suspended = rows.ended_as(*LISTENER_SUSPENDS)[where]
    found: Mask = suspended & (limit >= 0) & ((times == NONE) | (times >= limit))
    return found


def _rests(rows: Rows, other: Ints, late: Ints, until: Ints) -> Mask:
    """Does the other lane wait out a suspend time that is longer than the bound?"""
    over = rows.end[other] < rows.begin[late]
    rests: Mask = over & (free_us(rows, other) > until) & _asks_again(rows, other)
    return rests


def _has_a_thread(rows: Rows, lanes: Lanes, late: Ints, begin_us: Ints) -> Mask:
    """Were fewer lanes of the client at work since then than it has threads? Giving up is work, seen or not."""
    calls = lanes.calls[by_time(lanes.lane[lanes.calls], rows.begin[lanes.calls])]
    lane, end, now = lanes.lane[calls], rows.end[calls], rows.begin[late]
    begun = Timeline(lane, rows.begin[calls])
    latest = end[highest_so_far(lane, end)]
    latest_us = rows.ended[calls][highest_so_far(lane, rows.ended[calls])]
    over = np.flatnonzero(end < NEVER)
    ended = Timeline(lane[over], end[over])
    op, ops = dense(lane, rows.number("op_id")[calls])
    gave_up = np.full(ops, NEVER, np.int64)  # the seq at which each call did, if it did
    tries = np.flatnonzero(_last_try(rows, calls))
    np.minimum.at(gave_up, op[tries], end[tries])
    first = calls[first_of_each(*dense(lane))]
    client, mine = lanes.client[first], lanes.client[late]
    working = np.zeros(len(late), np.int64)
    start, stop = np.searchsorted(client, mine, "left"), np.searchsorted(client, mine, "right")
    for index, place in pairs(start, stop):
        of, at = lanes.lane[first[place]], now[index]
        last = begun.last_before(of, at)
        at_work = chosen(latest, last, NONE) >= at
        at_work |= chosen(latest_us, last, NONE) > begin_us[index]
        ended_last = chosen(over, ended.last_before(of, at), NOWHERE)
        at_work |= chosen(gave_up, chosen(op, ended_last, NOWHERE), NEVER) < at
        working += np.bincount(index[at_work], minlength=len(late))
    return working < rows.config("threads", late)


TWIN = Twin("RTY-6", READY_COLUMNS, kernel, by=CLIENTS)
find = TWIN.find


# ---- what breaks the clause, planted


def held_back(trace: Trace) -> Changes:
    """No call of a lane follows one that went well until the bound is over, and another lane was busy all the time."""
    config = trace.info.config
    slack_us = config.schedule_slack_ms * MS
    for rows in trace.works:
        for before, after in itertools.pairwise(row for row in rows if row.kind is Kind.DELIVER):
            went_well = (
                before.outcome is Outcome.SUCCESS
                and before.ended_us is not None
                and not before.reconsume_times
            )
            if not went_well or after.queue_offset != (before.queue_offset or 0) + 1:
                continue
            other = _call_of_another_lane(trace, before)
            pull = planting.fetched(rows, before, after.queue_offset)
            if other is None or other.ended_us is None or pull is None:
                continue
            until_us = max(before.ended_us or 0, other.started_us) + slack_us
            lock = planting.grant(trace, before, before.ended_us or 0, until_us)
            late = next(
                (
                    row
                    for row in trace.rows
                    if row.ended_us is not None and row.started_us > until_us
                ),
                None,
            )
            if lock is not None and late is not None and late.seq_begin < planting.until_drop(rows):
                gone = [
                    row.seq_begin
                    for row in rows
                    if row.kind is Kind.DELIVER and row.seq_begin > before.seq_begin
                ]
                yield partial(_held_back, trace, gone, other, after, late)


def _call_of_another_lane(trace: Trace, row: Row) -> Row | None:
    """The last one of its client that ended before the row did, and may have been suspended."""
    found = [
        other
        for other in trace.of(Kind.DELIVER)
        if other.client_id == row.client_id and other.group == row.group and other.lane != row.lane
        if other.seq_end is not None
        and other.seq_end < (row.seq_end or 0)
        and not other.reconsume_times
    ]
    return found[-1] if found and found[-1].started_us > row.started_us - MS * 500 else None


def _held_back(trace: Trace, gone: Sequence[int], other: Row, after: Row, late: Row) -> Planted:
    again = trace.another(after, late, 1)
    rested = other._replace(outcome=Outcome.SUSPEND, suspend_ms=30_000)
    left = set(gone)
    rows = [rested if row is other else row for row in trace.rows if row.seq_begin not in left]
    about = (other.seq_begin, again.seq_begin)
    return Planted(sorted([*rows, again], key=lambda row: row.seq_begin), tuple(sorted(about)))


DEFECTS = (
    Mutant(
        "held-back", "RTY-6", "a lane waits while another one rests", held_back, generated=False
    ),
)
