"""Calls of lanes that were ready, of many clients at once.

A client's lane is ready when its next message was fetched and the call before it ended well.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specs.facts.rows import Rows
from specs.facts.segments import (
    MS,
    NEVER,
    NO_TEXT,
    NONE,
    NOWHERE,
    Ints,
    Mask,
    Segments,
    Spans,
    Timeline,
    by_time,
    chosen,
    dense,
    first_fitting,
)
from specs.vocabulary import Kind, Outcome

READY_COLUMNS = (
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
"""What the questions here, and those of the two clauses, use."""


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
        calls = np.flatnonzero(rows.are(Kind.DELIVER) & self.named & (rows.offset != NONE))
        self.calls = calls[by_time(self.group[calls], rows.begin[calls])]
        """Group by group, by begin."""

    def reset_before(self, where: Ints, seq: Ints) -> Ints:
        """The seq of the group's last reset before these moments, NONE if there is none."""
        return chosen(self._reset_seqs, self._resets.last_before(self.group[where], seq), NONE)

    def life(self, where: Ints, seq: Ints) -> Ints:
        """The life that each row belongs to at its moment, NOWHERE if that is not known."""
        add = chosen(self.adds, self._added.last_before(self.lane[where], seq), NOWHERE)
        mine = self.rows.incarnation[np.maximum(add, 0)] == self.rows.incarnation[where]
        watched = self.rows.begin[np.maximum(add, 0)] > self.reset_before(where, seq)
        return np.where((add != NOWHERE) & mine & watched, add, NOWHERE)


class Leases:
    """Of each lane at a client: when it was granted, and when refused or given back."""

    def __init__(self, rows: Rows) -> None:
        self.rows, self.lane = rows, rows.shared(Lanes).lane
        answered = rows.are(Kind.LOCK) & (rows.end < NEVER)
        self._grants = np.flatnonzero(answered & rows.ended_as(Outcome.OK))
        self._granted = Timeline(self.lane[self._grants], rows.end[self._grants])
        refused = np.flatnonzero(answered & rows.ended_as(Outcome.REFUSED))
        unlocks = np.flatnonzero(rows.are(Kind.UNLOCK))
        self._losses = np.concatenate([rows.end[refused], rows.begin[unlocks]])
        self._lost = Timeline(self.lane[np.concatenate([refused, unlocks])], self._losses)

    def granted(self, where: Ints) -> Ints:
        """The lane's last grant to the client that was answered before these rows ended."""
        last = self._granted.last_before(self.lane[where], self.rows.end[where])
        return chosen(self._grants, last, NOWHERE)

    def lost_since(self, grant: Ints, where: Ints, until: Ints) -> Mask:
        """Was the lease of these rows' lanes refused or given back between the grant and a moment?"""
        last = chosen(self._losses, self._lost.last_before(self.lane[where], until), NONE)
        return last > self.rows.begin[grant]

    def outlive(self, grant: Ints, after: Ints, late: Ints, needed_us: Ints) -> tuple[Mask, Ints]:
        """Does each grant, or one renewal of it, begin at `needed_us` or later? And which renewal, where it needs one.

        The last renewal counts that was answered between the end of the row `after` and the call `late`, and before
        the grant ran out.
        """
        rows, order = self.rows, self._granted.order
        renewal = np.full(len(grant), NOWHERE, np.int64)
        short = np.flatnonzero(rows.started[grant] < needed_us)
        if len(short):
            late, run_out_us = late[short], self._run_out_us(grant[short])
            start, stop = self._granted.between(
                self.lane[late], rows.end[after[short]] + 1, rows.begin[late]
            )

            def came_before(index: Ints, place: Ints) -> Mask:
                found: Mask = rows.ended[self._grants[order[place]]] <= run_out_us[index]
                return found

            place = first_fitting(start, stop, came_before, step=-1)
            renewal[short] = chosen(self._grants, chosen(order, place, NOWHERE), NOWHERE)
        lasting = np.where(renewal != NOWHERE, renewal, grant)
        return rows.started[lasting] >= needed_us, renewal

    def _run_out_us(self, grant: Ints) -> Ints:
        return self.rows.started[grant] + self.rows.config("client_lease_ms", grant) * MS


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

    @property
    def last(self) -> Ints:
        """What each lane did last before it was ready: its call, or the pull."""
        return np.where(self.before != NOWHERE, self.before, self.pull)


def ready_calls(rows: Rows) -> Ready:
    """The calls of ready lanes, up to a step of a wall clock."""
    lanes, leases = rows.shared(Lanes), rows.shared(Leases)
    calls = lanes.calls
    life = lanes.life(calls, rows.begin[calls])
    calls, life = calls[life != NOWHERE], life[life != NOWHERE]
    known = Segments(life)
    offset, op = rows.offset[calls], rows.number("op_id")[calls]
    place = known.previous()
    before = chosen(calls, place, NOWHERE)
    highest = chosen(offset, known.highest_before(offset), NONE)
    is_new = (before == NOWHERE) | (chosen(op, place, NONE) != op)
    went_well = rows.ended_as(Outcome.SUCCESS, Outcome.COMMIT)[before] & (
        rows.end[before] < rows.begin[calls]
    )
    adds = lanes.adds
    first_adds = adds[Segments(lanes.lane[adds]).previous() < 0]
    begins = (before == NOWHERE) & np.isin(life, first_adds)
    kept = (
        is_new
        & (offset > highest)
        & (begins | ((before != NOWHERE) & went_well & (rows.ended[before] < NEVER)))
    )
    calls, life, before = calls[kept], life[kept], before[kept]
    pull = _fetched_by(rows, lanes, calls, life)
    kept = pull != NOWHERE
    calls, life, before, pull = calls[kept], life[kept], before[kept], pull[kept]
    idle = rows.offset[pull] == rows.offset[calls]
    next_one = (before != NOWHERE) & (rows.offset[before] == rows.offset[calls] - 1) & ~idle
    found_idle = idle & ((before == NOWHERE) | (rows.end[pull] > rows.end[before]))
    ready_us = np.where(
        next_one, np.maximum(rows.ended[pull], rows.ended[before]), rows.ended[pull]
    )
    lock_then = leases.granted(before)
    lost = leases.lost_since(lock_then, before, rows.end[before])
    until = rows.started[lock_then] + rows.config("client_lease_ms", calls) * MS
    kept_it = (before == NOWHERE) | ((lock_then != NOWHERE) & ~lost & (rows.ended[before] <= until))
    lock = np.where(next_one, lock_then, leases.granted(pull))
    known_ready = (next_one | found_idle) & kept_it & (lock != NOWHERE)
    known_ready &= ~leases.lost_since(lock, calls, rows.begin[calls])
    known_ready &= rows.begin[calls] < rows.clock_stepped(calls)
    return Ready(calls, life, pull, np.where(next_one, before, NOWHERE), lock, ready_us).only(
        known_ready
    )


def _fetched_by(rows: Rows, lanes: Lanes, calls: Ints, life: Ints) -> Ints:
    """For each call the first pull of its life that fetched its message and was over before; NOWHERE without one."""
    pulls = np.flatnonzero(
        rows.are(Kind.PULL) & lanes.named & rows.ended_as(Outcome.OK) & (rows.end < NEVER)
    )
    pulls = pulls[(rows.offset[pulls] != NONE) & (rows.value[pulls] > rows.offset[pulls])]
    of = lanes.life(pulls, rows.end[pulls])
    pulls, of = pulls[of != NOWHERE], of[of != NOWHERE]
    fetched = Spans(of, rows.offset[pulls], rows.value[pulls], rows.end[pulls])
    return chosen(
        pulls, fetched.first_covering(life, rows.offset[calls], rows.begin[calls]), NOWHERE
    )
