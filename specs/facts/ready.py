"""Calls of lanes that were ready, of many clients at once.

A client's lane is ready when its next message was fetched and the call before it ended well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from specs.facts.calls import may_be_by_hand
from specs.facts.columns import MS, NEVER, NONE, NOWHERE, Ints, Mask
from specs.facts.leases import LEASE_COLUMNS, refusals
from specs.facts.moments import Line
from specs.facts.presence import were_there
from specs.facts.pulls import told_ahead, told_back
from specs.facts.rows import Rows
from specs.facts.segments import (
    Segments,
    Spans,
    Timeline,
    by_time,
    chosen,
    dense,
    highest_so_far,
    positions,
)
from specs.vocabulary import Kind, Outcome

READY_COLUMNS = (
    *LEASE_COLUMNS,
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


def _moves(rows: Rows) -> tuple[Ints, Ints]:
    """When somebody moved an offset of a group: (number of the group, seq), whichever rows lie here."""
    pairs = [
        (number, seq)
        for number, place in enumerate(rows.parties("group")[1])
        for seq in rows.context_of(place).moves.get(rows.name_of("group", place), ())
    ]
    found = np.asarray(pairs, np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]


class Lanes:
    """Of every row the number of its group, of the client in it, and of the lane at the client; and each lane's lives.

    A life goes from an add to the next one of the lane at the client, or to a reset. Its number is that of its add.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.group, _ = rows.parties("group")
        self.client, _ = rows.parties("group", "client_id")
        self.lane, _ = dense(self.client, rows.lane)  # a client's lanes lie together
        self.named = rows.names_incarnation
        self.adds = np.flatnonzero(rows.are(Kind.ADD) & self.named)
        of, self._reset_seqs = _moves(rows)
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
    """Of each lane at a client: when it was granted, and when refused, given back, or sent away from."""

    def __init__(self, rows: Rows) -> None:
        self.rows, self.lane = rows, rows.shared(Lanes).lane
        answered = rows.are(Kind.LOCK) & (rows.end < NEVER)
        granted, refused = rows.ended_as(Outcome.OK), rows.shared(refusals)
        self._grants = Line(self.lane, rows.end, positions(answered & granted))
        self._grants_us = Line(self.lane, rows.ended, self._grants.where)
        self._refusals = Line(self.lane, rows.end, positions(answered & refused))
        self._silent = Line(self.lane, rows.end, positions(answered & ~(granted | refused)))
        self._asks = Line(self.lane, rows.begin, rows.of(Kind.LOCK))
        self._unlocks = Line(self.lane, rows.begin, rows.of(Kind.UNLOCK))
        self._away = Line(
            self.lane, rows.end, np.append(rows.shared(told_back), rows.shared(told_ahead))
        )

    def sent_away(self, where: Ints, since: Ints) -> Ints:
        """When, after a moment, a pull of these rows' lanes was first told to go on elsewhere; NEVER if none was."""
        return chosen(self.rows.end, self._away.first_after(self.lane[where], since), NEVER)

    def granted(self, where: Ints) -> Ints:
        """The lane's last grant to the client that was answered before these rows ended."""
        return self._grants.last_before(self.lane[where], self.rows.end[where])

    def granted_by(self, where: Ints, until: Ints, by_us: Ints) -> Ints:
        """Likewise, before a moment (a seq), and by a time."""
        last = self._grants_us.last_before(self.lane[where], by_us + 1)
        in_time = chosen(self.rows.end, last, NONE) < until
        return np.where(in_time, last, self._grants.last_before(self.lane[where], until))

    def asked_since(self, grant: Ints, where: Ints, until: Ints) -> Mask:
        """Was a request for the lease left unanswered since the grant, or is the last one under way at a moment?"""
        rows, lane = self.rows, self.lane[where]
        silent = chosen(rows.end, self._silent.last_before(lane, until), NONE)
        under_way = chosen(rows.end, self._asks.last_before(lane, until), NONE) > until
        return under_way | (silent > rows.begin[grant])

    def lost_since(self, grant: Ints, where: Ints, until: Ints) -> Mask:
        """Was the lease of these rows' lanes refused or given back between the grant and a moment?"""
        rows, lane = self.rows, self.lane[where]
        refused = chosen(rows.end, self._refusals.last_before(lane, until), NONE)
        given_back = chosen(rows.begin, self._unlocks.last_before(lane, until), NONE)
        found: Mask = np.maximum(refused, given_back) > rows.begin[grant]
        return found

    def outlive(self, grant: Ints, after: Ints, late: Ints, needed_us: Ints) -> tuple[Mask, Ints]:
        """Does each grant, or one renewal of it, begin at `needed_us` or later? And which renewal, where it needs one.

        The last renewal counts that was answered between the end of the row `after` and the call `late`, and before
        the grant ran out. Neither may be of another process than the call.
        """
        rows = self.rows
        run_out_us = rows.started[grant] + rows.config("client_lease_ms", grant) * MS
        renewal = self.granted_by(late, rows.begin[late], run_out_us)
        renews = chosen(rows.end, renewal, NONE) > rows.end[after]
        renewal = np.where(renews & (rows.started[grant] < needed_us), renewal, NOWHERE)
        lasting = np.where(renewal != NOWHERE, renewal, grant)
        others = rows.of_two_processes(grant, late) | rows.of_two_processes(lasting, late)
        return (rows.started[lasting] >= needed_us) & ~others, renewal


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

    def roles(self, mask: Mask) -> dict[str, Any]:
        """Some of them as a finding shows them."""
        found = self.only(mask)
        rows = ("add", "lock", "pull", "before", "late")
        return {
            **{name: getattr(found, name) for name in rows},
            "also": {"ready_us": found.ready_us},
        }

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
    went_well = rows.ended_as(Outcome.SUCCESS, Outcome.COMMIT)[before] & (before != NOWHERE)
    went_well &= (rows.end[before] < rows.begin[calls]) & (rows.ended[before] < NEVER)
    adds = lanes.adds
    first_adds = adds[Segments(lanes.lane[adds]).previous() < 0]
    begins = (before == NOWHERE) & np.isin(life, first_adds)
    kept = is_new & (offset > highest) & (begins | went_well)
    calls, life, before = calls[kept], life[kept], before[kept]
    pull = _fetched_by(rows, lanes, calls, life)
    kept = pull != NOWHERE
    calls, life, before, pull = calls[kept], life[kept], before[kept], pull[kept]
    idle = rows.offset[pull] == rows.offset[calls]
    next_one = (before != NOWHERE) & (rows.offset[before] == rows.offset[calls] - 1) & ~idle
    found_idle = idle & ((before == NOWHERE) | (rows.end[pull] > rows.end[before]))
    both_us = np.maximum(rows.ended[pull], rows.ended[before])
    ready_us = np.where(next_one, both_us, rows.ended[pull])
    lock_then = leases.granted(before)
    lost = leases.lost_since(lock_then, before, rows.end[before])
    until = rows.started[lock_then] + rows.config("client_lease_ms", calls) * MS
    kept_it = (before == NOWHERE) | ((lock_then != NOWHERE) & ~lost & (rows.ended[before] <= until))
    lock = np.where(next_one, lock_then, leases.granted(pull))
    known_ready = (next_one | found_idle) & kept_it & (lock != NOWHERE)
    known_ready &= ~leases.lost_since(lock, calls, rows.begin[calls])
    known_ready &= rows.begin[calls] < rows.clock_stepped(calls)
    ready = Ready(calls, life, pull, np.where(next_one, before, NOWHERE), lock, ready_us)
    known_ready &= leases.sent_away(calls, rows.begin[ready.last]) > rows.begin[calls]
    return ready.only(known_ready)


def could_work(rows: Rows, ready: Ready, until: Ints) -> tuple[Mask, Ints]:
    """Had the client of each of these the lease until then (in µs), or until it went on, and was it there? And the
    renewal by which it had."""
    late = ready.late
    lease_us = rows.config("client_lease_ms", late) * MS
    needed_us = np.minimum(until, rows.started[late]) - lease_us
    outlives, renewal = rows.shared(Leases).outlive(ready.lock, ready.last, late, needed_us)
    there = were_there(rows, late, rows.begin[ready.add], ready.ready_us, until)
    return outlives & there, renewal


def _fetched_by(rows: Rows, lanes: Lanes, calls: Ints, life: Ints) -> Ints:
    """For each call the first pull of its life that fetched its message and was over before; NOWHERE without one."""
    of, pulls = np.full(rows.size, NOWHERE, np.int64), fetching(rows)
    of[pulls] = lanes.life(pulls, rows.end[pulls])
    of[calls] = life
    return first_that_fetched(rows, of, calls, rows.begin[calls])


def fetching(rows: Rows) -> Ints:
    """The pulls of incarnations that brought messages."""
    found = rows.are(Kind.PULL) & rows.ended_as(Outcome.OK) & (rows.end < NEVER)
    found &= rows.names_incarnation & (rows.offset != NONE)
    return positions(found & (rows.value > rows.offset))


def first_that_fetched(rows: Rows, of: Ints, calls: Ints, until: Ints) -> Ints:
    """The first pull that had brought the message of each of these calls before a moment; or NOWHERE.

    of: of each row whose it is, NOWHERE of nobody's.
    """
    pulls = fetching(rows)
    pulls = pulls[of[pulls] != NOWHERE]
    fetched = Spans(of[pulls], rows.offset[pulls], rows.value[pulls], rows.end[pulls])
    return chosen(pulls, fetched.first_covering(of[calls], rows.offset[calls], until), NOWHERE)


def pulled_again(rows: Rows) -> tuple[Ints, Ints, Ints]:
    """Each answered pull, the next one of its life, and the life, where no other pull of the lane began or ended in
    between."""
    lanes = rows.shared(Lanes)
    pulls = positions(rows.are(Kind.PULL) & lanes.named & (rows.offset != NONE))
    last = pulls[rows.end[pulls] < NEVER]
    again = Line(lanes.lane, rows.begin, pulls).first_after(lanes.lane[last], rows.end[last])
    ended = Line(lanes.lane, rows.end, last).last_before(lanes.lane[again], rows.begin[again])
    life = lanes.life(last, rows.end[last])
    kept = (again != NOWHERE) & (ended == last) & rows.ended_as(Outcome.OK)[last]
    kept &= (rows.value[last] != NONE) & (rows.ended[last] < NEVER)
    kept &= (life != NOWHERE) & (lanes.life(again, rows.begin[again]) == life)
    return last[kept], again[kept], life[kept]


def lowest_held(rows: Rows, again: Ints, life: Ints) -> Ints:
    """The lowest offset that the client may still hold when it pulls again: where its first answered pull asked; in
    auto mode no lower than a batch below the highest that it was called with."""
    lanes = rows.shared(Lanes)
    answered = rows.are(Kind.PULL) & lanes.named & rows.ended_as(Outcome.OK) & (rows.end < NEVER)
    pulls = positions(answered & (rows.offset != NONE) & (rows.value != NONE))
    pulls = pulls[np.argsort(-rows.end[pulls], kind="stable")]
    first = np.full(rows.size + 1, NOWHERE, np.int64)
    first[lanes.life(pulls, rows.end[pulls])] = pulls  # the last one that is written stays
    calls = lanes.calls
    of = lanes.life(calls, rows.begin[calls])
    order = by_time(of, rows.begin[calls])
    calls, of, now = calls[order], of[order], rows.begin[again]
    highest = rows.offset[calls][highest_so_far(of, rows.offset[calls])]
    called = chosen(highest, Timeline(of, rows.begin[calls]).last_before(life, now), NOWHERE)
    by_hand = calls[(may_be_by_hand(rows) & (rows.end < NEVER))[calls]]
    ended = Timeline(lanes.life(by_hand, rows.end[by_hand]), rows.end[by_hand])
    held = np.where(ended.count_before(life, now) > 0, NONE, called)
    return np.maximum(rows.offset[first[life]], held + 1 - rows.config("batch", again))
