"""While one lane of a client rests after a suspension, or its listener takes long, its other lanes go on.

A lane is *ready* when its next message was fetched and the call before it ended SUCCESS or COMMIT: from then on nothing
but the work of other lanes can hold it back. Refuted by its next call when that begins more than the bound
(`schedule_slack_ms`) late, and another lane of the client was busy all that time: with one call, or with the suspend
time that the call asked for. Where the other lane began later than this one was ready, the bound counts from there.

Claimed only where nothing else can have delayed the call. The incarnation was watched from its add, and it is the same
one that is called at last: a drop ends it. The message is the next one: behind that of the call before (and its pull
began before it), or else the first one of a pull that ended when the lane had nothing to do. A grant of the lease was
answered before the lane was ready, and it or one renewal of it outlives the bound; nothing was refused and nothing
given back since, and no pull told to go on elsewhere; and it was fresh when the last call ended, if there was one,
since a lane that finds itself without a lease asks again after seconds only. The client was not paused, did not die,
and was not shutting down when the bound ended. It has twice as many threads as it ever added lanes, since a call of an
earlier life of a lane may still keep one; for that reason a first call is judged only in a lane's first life at this
client. With fewer threads one must have been free: a lane that waits out its suspend time keeps none. Then the bound
counts from the end of the call that suspended the other lane, if that was later; and since then fewer lanes than there
are threads were at work, or may have been at giving up what they had tried for the last time. Says nothing of a lane
whose last call asked for its messages again, or of a message that was delivered before.
"""

import numpy as np

from specs.clauses.liveness import ready_lane_is_worked_on
from specs.clauses.premises import (
    FRESH_LEASE,
    NO_FILTER,
    NO_RESET,
    NO_WALL_CLOCK_STEP,
    NOT_PAUSED,
    ORDERLY,
    Premise,
)
from specs.clauses.rows import asks_again
from specs.clauses.terms import Findings, Row, Rows, at, ms, who
from specs.facts.calls import may_be_used_up, pause_ms, puts_back
from specs.facts.columns import MS, NEVER, NONE, NOWHERE, Ints, Mask
from specs.facts.presence import have_threads, last_crash
from specs.facts.ready import READY_COLUMNS, Lanes, Ready, could_work, ready_calls
from specs.facts.segments import (
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
from specs.plan.traits import Stake, Trait
from specs.vocabulary import Key, Kind, Party

ID = "RTY-6"
TITLE = "other lanes go on"
STATEMENT = (
    "While one lane of a client is suspended or its listener takes long, the other lanes go on, as long as the client "
    "has threads for all of them; a lane that waits out its suspend time keeps no thread."
)
PARTY = Party.CLIENT
KEY = Key.GROUP
PREMISE = (
    ORDERLY,
    NO_WALL_CLOCK_STEP,
    NO_RESET,
    NOT_PAUSED,
    NO_FILTER,
    FRESH_LEASE,
    Premise(
        "a thread",
        "the client has twice as many threads as it ever added lanes, or the other lane waits out its suspend time and "
        "fewer lanes are at work meanwhile than there are threads",
    ),
)
SOURCES = ("docs/sources.md#orderly-loop",)
STAKES = (Stake(Trait.FRESH_LEASE),)
KINDS = frozenset({Kind.ADD, Kind.PULL, Kind.DELIVER, Kind.LOCK, Kind.UNLOCK, Kind.RESET})
SETTINGS = ("client_lease_ms", "max_reconsume_times", "suspend_ms", "threads")
NEEDS = frozenset({Kind.ADD, Kind.DELIVER, Kind.LOCK, Kind.PULL})
EXCUSED_BY = frozenset({Kind.LEAVE})
COLUMNS = READY_COLUMNS
BY_CLIENTS = True


class HeldBack(ready_lane_is_worked_on.NotCalled):
    """busy: a call of another lane."""

    busy: Row


def judge(rows: Rows, findings: Findings) -> None:
    """Each call of a lane that was ready beside the call of another lane that kept its client busy for long."""
    lanes = rows.shared(Lanes)
    if not len(lanes.adds) or not len(lanes.calls):
        return
    busy = _Busy(rows, lanes)
    if not len(busy.calls):
        return
    ready = rows.shared(ready_calls)
    ready = ready.only(busy.may_matter(ready))
    other = busy.of(ready)
    ready, other = ready.only(other != NOWHERE), other[other != NOWHERE]
    slack_us = rows.config("schedule_slack_ms", ready.late) * MS
    until = np.maximum(ready.ready_us, rows.started[other]) + slack_us
    threads = have_threads(rows, ready.late)
    few = np.flatnonzero(~threads)
    begin = np.maximum(ready.ready_us, rows.ended[other])[few]
    until[few] = begin + slack_us[few]
    late = ready.late[few]
    threads[few] = _rests(rows, other[few], late, until[few])
    few, late, begin = (each[threads[few]] for each in (few, late, begin))
    threads[few] = _has_a_thread(rows, lanes, late, begin)
    counts, renewal = could_work(rows, ready, until)
    counts &= threads
    findings.at_stake(ready.late[counts])
    broken = counts & (rows.started[ready.late] > until)
    findings.broken(HeldBack, **ready.roles(broken), renewal=renewal[broken], busy=other[broken])


class _Busy:
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
        crashed = last_crash(rows, late)
        since = np.maximum(lanes.reset_before(late, now), crashed) + 1
        start, stop = self._line.between(lanes.client[late], since, now)
        found = self._longest_of(ready, start, stop)
        waits = found == NOWHERE
        found[waits] = self._first_running(ready.only(waits), start[waits], stop[waits])
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

    def _first_running(self, ready: Ready, start: Ints, stop: Ints) -> Ints:
        """Of each one's places of other lanes the first whose call still runs, and does so until after the bound."""
        rows, late, end = self.rows, ready.late, self.rows.end[self.calls]
        latest = end[highest_so_far(self.client, end)]
        start = np.maximum(
            start, first_above(self.client, latest, self.lanes.client[late], rows.begin[late])
        )
        slack_us = rows.config("schedule_slack_ms", late) * MS

        def runs(index: Ints, place: Ints) -> Mask:
            begun_us = np.maximum(ready.ready_us[index], rows.started[self.calls[place]])
            free, then = self.free[place], late[index]
            until_us = np.where(free == NEVER, rows.started[then], free)
            found: Mask = self._of_another_lane(then, place) & (end[place] > rows.begin[then])
            return found & (until_us > begun_us + slack_us[index])

        return first_fitting(start, stop, runs)

    def _of_another_lane(self, late: Ints, place: Ints) -> Mask:
        found: Mask = self.lanes.lane[self.calls[place]] != self.lanes.lane[late]
        return found


def free_us(rows: Rows, where: Ints) -> Ints:
    """Until when each call keeps its lane, the suspend time included; NEVER for one that did not end."""
    again = puts_back(rows)[where] & ~may_be_used_up(rows)[where]
    ended = rows.ended[where]
    rest = np.where(again & (ended != NEVER), pause_ms(rows, where) * MS, 0)
    return np.where(rows.end[where] == NEVER, NEVER, ended + rest)


def _rests(rows: Rows, other: Ints, late: Ints, until: Ints) -> Mask:
    """Does the other lane wait out a suspend time that is longer than the bound?"""
    over = rows.end[other] < rows.begin[late]
    rests: Mask = over & (free_us(rows, other) > until) & puts_back(rows)[other]
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
    tries = np.flatnonzero(may_be_used_up(rows)[calls])
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


def explain(found: HeldBack) -> str:
    late, busy = found.late, found.busy
    ready = f"{found.ready_us / 1_000_000:.3f} s"
    how = "rested" if asks_again(busy) else "was at work"
    waited = ms(late.started_us - found.ready_us)
    return (
        f"{who(late)} had offset {late.queue_offset} of {late.lane} ready at {ready} and the lease since "
        f"{at(found.lock)}, but delivered it only at {at(late)}, {waited} later, while {busy.lane} {how} from "
        f"{at(busy)} on ({busy.outcome})"
    )
