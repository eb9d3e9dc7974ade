"""RTY-6 over columns: which calls are the next of a ready lane is said for all at once, by whole arrays.

Only for those that begin after another call of their client kept a lane for longer than the bound, it is looked up
which one it was, and whether anything excuses them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from spark_checkers import planting
from spark_checkers.clauses.retry.no_redelivery_before_suspend import LEAST_MS, MOST_MS
from spark_checkers.planting import Changes, Mutant, Planted, Trace
from spark_checkers.rows import MS, NEVER, NO_TEXT, NONE, Findings, Rows
from spark_checkers.segments import (
    NOWHERE,
    Ints,
    Mask,
    Segments,
    Timeline,
    chosen,
    composite,
    dense,
)
from spark_checkers.twin import CLIENTS, Twin
from specs.history.row import Row
from specs.vocabulary import LISTENER_SUSPENDS, CommitMode, Kind, Outcome


def moves_of(rows: Rows, group: Ints) -> tuple[Ints, Ints]:
    """When somebody moved an offset of a group: (number of the group, seq), whichever rows lie here."""
    pairs = [
        (number, seq)
        for number, place in zip(*np.unique(group, return_index=True), strict=True)
        for seq in rows.context_of(int(place)).moves.get(rows.name_of("group", int(place)), ())
    ]
    found = np.asarray(pairs, np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]


class Lanes:
    """Of every row the number of its group, of the client in it, and of the lane at the client; and each lane's lives.

    A life goes from an add to the next one of the lane at the client, or to a reset. Its number is that of its add.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.group, _ = dense(rows.run, rows.group)
        self.client, _ = dense(self.group, rows.client)
        self.lane, _ = dense(self.client, rows.lane)
        self.named = rows.text("incarnation") != NO_TEXT
        self.adds = np.flatnonzero(rows.are(Kind.ADD) & self.named)
        of, self._reset_seqs = moves_of(rows, self.group)
        self._added = Timeline(self.lane[self.adds], rows.begin[self.adds])
        self._resets = Timeline(of, self._reset_seqs)

    def reset_before(self, where: Ints, seq: Ints) -> Ints:
        """The seq of the group's last reset before these moments, NONE if there is none."""
        return chosen(self._reset_seqs, self._resets.last_before(self.group[where], seq), NONE)

    def life(self, where: Ints, seq: Ints) -> Ints:
        """The life that each row belongs to at its moment, NOWHERE if that is not known."""
        add = chosen(self.adds, self._added.last_before(self.lane[where], seq), NOWHERE)
        mine = self.rows.incarnation[np.maximum(add, 0)] == self.rows.incarnation[where]
        watched = self.rows.begin[np.maximum(add, 0)] > self.reset_before(where, seq)
        return np.where((add >= 0) & mine & watched, add, NOWHERE)


def free_us(rows: Rows, where: Ints) -> Ints:
    """Until when each call keeps its lane, the suspend time included; NEVER for one that did not end."""
    suspends = rows.ended_as(*LISTENER_SUSPENDS)[where]
    manual = rows.text("commit_mode")[where] == rows.code("commit_mode", CommitMode.MANUAL)
    limit, times = rows.config("max_reconsume_times", where), rows.number("reconsume_times")[where]
    last = (limit >= 0) & ((times == NONE) | (times >= limit))
    again = (suspends & ~last) | (rows.ended_as(Outcome.ROLLBACK)[where] & manual)
    asked = rows.number("suspend_ms")[where]
    rest = (
        np.clip(np.where(asked < 0, rows.config("suspend_ms", where), asked), LEAST_MS, MOST_MS)
        * MS
    )
    ended = rows.ended[where]
    return np.where(
        rows.end[where] == NEVER, NEVER, ended + np.where(again & (ended != NEVER), rest, 0)
    )


@dataclass(frozen=True, slots=True)
class Ready:
    """Calls of lanes that were ready: the rows of each, in columns. before: NOWHERE where the pull found it idle."""

    late: Ints
    add: Ints
    pull: Ints
    before: Ints
    lock: Ints
    ready_us: Ints

    def only(self, mask: Mask) -> Ready:
        columns = (self.late, self.add, self.pull, self.before, self.lock, self.ready_us)
        return Ready(*(column[mask] for column in columns))


def ready_calls(rows: Rows, lanes: Lanes, calls: Ints) -> Ready:
    """calls: all rows of calls, by begin."""
    life = lanes.life(calls, rows.begin[calls])
    calls, life = calls[life >= 0], life[life >= 0]
    known = Segments(life)
    offset, op = rows.offset[calls], rows.number("op_id")[calls]
    place = known.previous()
    before = chosen(calls, place, NOWHERE)
    highest = chosen(offset, known.highest_before(offset), NONE)
    is_new = (before < 0) | (chosen(op, place, NONE) != op)
    went_well = rows.ended_as(Outcome.SUCCESS, Outcome.COMMIT)[before] & (
        rows.end[before] < rows.begin[calls]
    )
    adds = lanes.adds
    first_adds = adds[Segments(lanes.lane[adds]).previous() < 0]
    begins = (before < 0) & np.isin(life, first_adds)
    kept = (
        is_new
        & (offset > highest)
        & (begins | ((before >= 0) & went_well & (rows.ended[before] < NEVER)))
    )
    calls, life, before = calls[kept], life[kept], before[kept]
    pull = _pulls(rows, lanes, calls, life)
    kept = pull >= 0
    calls, life, before, pull = calls[kept], life[kept], before[kept], pull[kept]
    idle = rows.offset[pull] == rows.offset[calls]
    next_one = (before >= 0) & (rows.offset[before] == rows.offset[calls] - 1) & ~idle
    found_idle = idle & ((before < 0) | (rows.end[pull] > rows.end[before]))
    ready_us = np.where(
        next_one, np.maximum(rows.ended[pull], rows.ended[before]), rows.ended[pull]
    )
    lock_then = _granted(rows, lanes, before)
    lost = _lost_since(rows, lanes, lock_then, before, rows.end[before])
    until = rows.started[lock_then] + rows.config("client_lease_ms", calls) * MS
    kept_it = (before < 0) | ((lock_then >= 0) & ~lost & (rows.ended[before] <= until))
    lock = np.where(next_one, lock_then, _granted(rows, lanes, pull))
    known_ready = (next_one | found_idle) & kept_it & (lock >= 0)
    known_ready &= ~_lost_since(rows, lanes, lock, calls, rows.begin[calls])
    return Ready(calls, life, pull, np.where(next_one, before, NOWHERE), lock, ready_us).only(
        known_ready
    )


def _pulls(rows: Rows, lanes: Lanes, calls: Ints, life: Ints) -> Ints:
    """For each call the first pull of its life that fetched its message and was over before; NOWHERE without one."""
    pulls = np.flatnonzero(
        rows.are(Kind.PULL) & lanes.named & rows.ended_as(Outcome.OK) & (rows.end < NEVER)
    )
    pulls = pulls[(rows.offset[pulls] != NONE) & (rows.value[pulls] > rows.offset[pulls])]
    of = lanes.life(pulls, rows.end[pulls])
    pulls, of = pulls[of >= 0], of[of >= 0]
    order = np.lexsort((rows.end[pulls], of))
    pulls, of = pulls[order], of[order]
    found = np.full(len(calls), NOWHERE, np.int64)
    if not len(pulls):
        return found
    start, stop = np.searchsorted(of, life, "left"), np.searchsorted(of, life, "right")
    # The first pull that reaches beyond the message, by the highest offset that any pull up to it has reached.
    number, _ = dense(of)
    reached = np.maximum.accumulate(composite(number, rows.value[pulls]))
    reached = rows.value[pulls][np.searchsorted(reached, reached, "left")]
    for index in range(len(calls)):
        offset, begin = int(rows.offset[calls[index]]), int(rows.begin[calls[index]])
        low, high = int(start[index]), int(stop[index])
        place = low + int(np.searchsorted(reached[low:high], offset, "right"))
        while place < high and rows.end[pulls[place]] < begin:
            if rows.offset[pulls[place]] <= offset < rows.value[pulls[place]]:
                found[index] = pulls[place]
                break
            place += 1
    return found


def _granted(rows: Rows, lanes: Lanes, at: Ints) -> Ints:
    """The lane's last grant to the client that was answered before these rows ended."""
    grants = np.flatnonzero(rows.are(Kind.LOCK) & rows.ended_as(Outcome.OK) & (rows.end < NEVER))
    last = Timeline(lanes.lane[grants], rows.end[grants]).last_before(lanes.lane[at], rows.end[at])
    return chosen(grants, last, NOWHERE)


def _lost_since(rows: Rows, lanes: Lanes, lock: Ints, where: Ints, until: Ints) -> Mask:
    """Was the lease of these rows' lanes refused or given back between the grant and a moment?"""
    refused = np.flatnonzero(
        rows.are(Kind.LOCK) & rows.ended_as(Outcome.REFUSED) & (rows.end < NEVER)
    )
    unlocks = np.flatnonzero(rows.are(Kind.UNLOCK))
    lost = np.concatenate([refused, unlocks])
    seq = np.concatenate([rows.end[refused], rows.begin[unlocks]])
    last = chosen(seq, Timeline(lanes.lane[lost], seq).last_before(lanes.lane[where], until), NONE)
    return last > rows.begin[lock]


class Renewals:
    """The answered grants, lane by lane."""

    def __init__(self, rows: Rows, lanes: Lanes) -> None:
        self.rows = rows
        self.lanes = lanes
        grants = np.flatnonzero(
            rows.are(Kind.LOCK) & rows.ended_as(Outcome.OK) & (rows.end < NEVER)
        )
        self.grants = grants[np.lexsort((rows.end[grants], lanes.lane[grants]))]
        self.lane = lanes.lane[self.grants]

    def of(self, lock: int, after: int, late: int, lease_us: int) -> int:
        """The last one between the end of a row and the call that was answered before the grant ran out; or NOWHERE."""
        rows = self.rows
        low, high = np.searchsorted(self.lane, [self.lanes.lane[late], self.lanes.lane[late] + 1])
        mine = self.grants[low:high]
        mine = mine[(rows.end[mine] > rows.end[after]) & (rows.end[mine] < rows.begin[late])]
        mine = mine[rows.ended[mine] <= rows.started[lock] + lease_us]
        return int(mine[-1]) if len(mine) else NOWHERE


class Busy:
    """Calls that keep their lane for longer than the bound, client by client."""

    def __init__(self, rows: Rows, lanes: Lanes, calls: Ints) -> None:
        self.rows = rows
        self.lanes = lanes
        free = free_us(rows, calls)
        long = free > rows.started[calls] + rows.config("schedule_slack_ms", calls) * MS
        self.calls, self.free = calls[long], free[long]
        order = np.lexsort((rows.begin[self.calls], lanes.client[self.calls]))
        self.calls, self.free = self.calls[order], self.free[order]
        self.client = lanes.client[self.calls]
        number, _ = dense(self.client)
        self.begin = composite(number, rows.begin[self.calls]) if len(self.calls) else self.calls

    def may_matter(self, ready: Ready) -> Mask:
        """Did any call of the client that began before keep its lane until after the bound?"""
        if not len(self.calls):
            return np.zeros(len(ready.late), np.bool_)
        rows = self.rows
        seen = Timeline(self.client, rows.begin[self.calls])
        last = seen.last_before(self.lanes.client[ready.late], rows.begin[ready.late])
        number, _ = dense(self.client)
        rank = dense(self.free)[0]
        width = int(rank.max()) + 1
        longest = np.maximum.accumulate(number * width + rank) - number * width
        values = np.unique(self.free)
        until = ready.ready_us + rows.config("schedule_slack_ms", ready.late) * MS
        return (last >= 0) & (values[longest[np.maximum(last, 0)]] > until)

    def of(self, late: int, ready_us: int, slack_us: int, reset: int) -> int:
        """The call that kept its lane longest after the bound, else the first one that still runs; or NOWHERE."""
        rows, lanes = self.rows, self.lanes
        low, high = np.searchsorted(self.client, [lanes.client[late], lanes.client[late] + 1])
        calls, free = self.calls[low:high], self.free[low:high]
        now = int(rows.begin[late])
        kept = int(np.searchsorted(rows.begin[calls], now))
        calls, free = calls[:kept], free[:kept]
        died = rows.context_of(late).latest(_client(rows, late), Kind.CRASH, now)
        alive = (lanes.lane[calls] != lanes.lane[late]) & (
            rows.begin[calls] > max(reset, died or NONE)
        )
        over = np.flatnonzero(alive & (rows.end[calls] < now) & (free > ready_us + slack_us))
        if len(over):
            return int(calls[over[np.argmax(free[over])]])
        if rows.started[late] <= ready_us + slack_us:
            return NOWHERE
        running = (
            alive & (rows.end[calls] > now) & (rows.started[calls] + slack_us < rows.started[late])
        )
        found = np.flatnonzero(running)
        return int(calls[found[0]]) if len(found) else NOWHERE


def _client(rows: Rows, place: int) -> str:
    code = int(rows.client[place])
    return rows.words("client_id")[code] if code != NO_TEXT else ""


def kernel(rows: Rows, findings: Findings) -> None:
    """Of the calls of ready lanes, those that began after another lane had become busy for long."""
    lanes = Lanes(rows)
    calls = np.flatnonzero(rows.are(Kind.DELIVER) & lanes.named & (rows.offset != NONE))
    if not len(lanes.adds) or not len(calls):
        return
    calls = calls[np.lexsort((rows.begin[calls], lanes.group[calls]))]
    busy = Busy(rows, lanes, calls)
    if not len(busy.calls):
        return
    ready = ready_calls(rows, lanes, calls)
    ready = ready.only(rows.begin[ready.late] < rows.clock_stepped(ready.late))
    ready = ready.only(busy.may_matter(ready))
    resets = lanes.reset_before(ready.late, rows.begin[ready.late])
    renewals = Renewals(rows, lanes)
    for index in range(len(ready.late)):
        late, add, pull, before, lock, ready_us = (
            int(column[index])
            for column in (
                ready.late,
                ready.add,
                ready.pull,
                ready.before,
                ready.lock,
                ready.ready_us,
            )
        )
        context = rows.context_of(late)
        slack_us = context.info.config.schedule_slack_ms * MS
        lease_us = context.info.config.client_lease_ms * MS
        other = busy.of(late, ready_us, slack_us, int(resets[index]))
        if other == NOWHERE:
            continue
        until = max(ready_us, int(rows.started[other])) + slack_us
        if not context.has_threads(_client(rows, late), int(rows.begin[late])):
            begin = max(ready_us, int(rows.ended[other]))
            until = begin + slack_us
            if not _rests(rows, other, late, until) or not _has_a_thread(
                rows, lanes, calls, late, begin
            ):
                continue
        needed = min(until, int(rows.started[late])) - lease_us
        renewal = NOWHERE
        if rows.started[lock] < needed:
            renewal = renewals.of(lock, before if before != NOWHERE else pull, late, lease_us)
            if renewal == NOWHERE or rows.started[renewal] < needed:
                continue
        if not _is_there(rows, late, add, ready_us):
            continue
        findings.at_stake_times(late, 1)
        if rows.started[late] > until:
            evidence = (add, lock, renewal, pull, before, other, late)
            findings.violation([place for place in evidence if place != NOWHERE])


def _is_there(rows: Rows, late: int, add: int, ready_us: int) -> bool:
    """Is the client alive all the time?"""
    context, client, now = rows.context_of(late), _client(rows, late), int(rows.begin[late])
    leaving = context.leaving_at(client, rows.name_of("group", late), now)
    gone = leaving or context.client_died_between(client, int(rows.begin[add]), now)
    return not gone and not context.paused_since(client, ready_us, now)


def _rests(rows: Rows, other: int, late: int, until: int) -> bool:
    """Does the other lane wait out a suspend time that is longer than the bound?"""
    if rows.end[other] >= rows.begin[late]:
        return False
    where = np.asarray([other])
    free = int(free_us(rows, where)[0])
    return free > until and _asks_again(rows, where)[0]


def _asks_again(rows: Rows, where: Ints) -> Mask:
    manual = rows.text("commit_mode")[where] == rows.code("commit_mode", CommitMode.MANUAL)
    again: Mask = rows.ended_as(*LISTENER_SUSPENDS)[where] | (
        rows.ended_as(Outcome.ROLLBACK)[where] & manual
    )
    return again


def _has_a_thread(rows: Rows, lanes: Lanes, calls: Ints, late: int, begin_us: int) -> bool:
    """Were fewer lanes of the client at work since then than it has threads? Giving up is work, seen or not."""
    now = int(rows.begin[late])
    mine = calls[(lanes.client[calls] == lanes.client[late]) & (rows.begin[calls] < now)]
    over = rows.end[mine] < now
    at_work = ~over | (rows.ended[mine] > begin_us)
    limit, times = rows.config("max_reconsume_times", mine), rows.number("reconsume_times")[mine]
    last_try = (
        (limit >= 0)
        & ((times == NONE) | (times >= limit))
        & rows.ended_as(*LISTENER_SUSPENDS)[mine]
    )
    place, count = dense(lanes.lane[mine])
    busy = np.zeros(count, np.bool_)
    busy[place[at_work]] = True
    ended = mine[over][np.argsort(rows.end[mine[over]], kind="stable")]
    last_call = dict(
        zip(lanes.lane[ended].tolist(), rows.number("op_id")[ended].tolist(), strict=True)
    )
    for index in np.flatnonzero(over & last_try).tolist():
        row = mine[index]
        busy[place[index]] |= last_call[int(lanes.lane[row])] == rows.number("op_id")[row]
    return bool(busy.sum() < rows.config_of(late).threads)


COLUMNS = (
    "client_id",
    "commit_mode",
    "ended_us",
    "incarnation",
    "op_id",
    "outcome",
    "queue_offset",
    "reconsume_times",
    "started_us",
    "suspend_ms",
    "value",
)
TWIN = Twin("RTY-6", COLUMNS, kernel, by=CLIENTS)
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
