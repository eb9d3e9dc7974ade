"""While a lane waits for a thread, no other lane of its client keeps one for longer than the cap and one call.

Lanes wait for a thread in line. One that has had its thread for the cap on continuous work (60 s by default) starts
no further call before the others in line have had their turn; so with L lanes and T threads none waits for longer
than ceil(L / T) times the cap and one call. That sum follows from what is judged here, one turn: a lane *waits* from
the end of its incarnation's first pull that found messages until its first call. Another lane of the same client that
starts a call in that time starts none more than the cap later while the first one still waits. A pull that found none
and is told to go on further ahead begins no waiting, nor does any pull of a group of which a member filters, as its
start tells: what it found the client may not want.

A lane without a fresh lease is not in line: an unlock, a refusal, or no grant within the client's limit ends its
waiting, and so do its drop, a reset, and the shutdown, the death or a pause of its client. A lane that was dropped and
added again while a call of its earlier life still runs waits for that call, and not for a thread: it is not judged.
The slack of a timer is granted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specs.clauses.judging import Finding
from specs.clauses.premises import (
    NO_FILTER,
    NO_RESET,
    NO_WALL_CLOCK_STEP,
    NOT_PAUSED,
    ORDERLY,
    Premise,
)
from specs.clauses.words import at, ms, who
from specs.facts.findings import Findings
from specs.facts.rows import KINDS as ALL_KINDS
from specs.facts.rows import OUTCOMES, Rows
from specs.facts.run_context import RunContext
from specs.facts.segments import MS, NEVER, NO_TEXT, NONE, NOWHERE, Ints, Mask, by_time, dense
from specs.history.row import Row
from specs.plan.traits import Stake, Trait
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "LIV-3"
TITLE = "no lane keeps its thread"
STATEMENT = (
    "No lane waits for a thread longer than ceil(lanes / threads) turns; a turn is the cap on continuous work and one "
    "call."
)
PARTY = Party.CLIENT
KEY = Key.GROUP
IN_LINE = Premise(
    "in line",
    "the client neither died nor began to shut down while the lane waited",
    told_by=frozenset({Kind.CRASH, Kind.LEAVE}),
)
PREMISE = (ORDERLY, NO_WALL_CLOCK_STEP, NOT_PAUSED, IN_LINE, NO_RESET, NO_FILTER)
SOURCES = ("docs/sources.md#orderly-loop",)
STAKES = (Stake(Trait.FEW_THREADS),)
KINDS = frozenset(
    {Kind.ADD, Kind.DROP, Kind.PULL, Kind.DELIVER, Kind.LOCK, Kind.UNLOCK, Kind.RESET}
)
SETTINGS = ("client_lease_ms", "continuous_ms")
NEEDS = frozenset({Kind.ADD, Kind.DELIVER, Kind.PULL})
EXCUSED_BY = frozenset({Kind.JOIN})
BY_CLIENTS = True
COLUMNS = (
    "client_id",
    "code",
    "ended_us",
    "incarnation",
    "op_id",
    "outcome",
    "queue_offset",
    "started_us",
    "value",
)


@dataclass(frozen=True, slots=True)
class Starved(Finding):
    """pull: since when the lane waits. first, later: calls of one other lane."""

    add: Row
    pull: Row
    first: Row
    later: Row


BEGIN, END = 0, 1
OK = OUTCOMES.index(Outcome.OK)


class Waiting:
    """One incarnation that was not called yet, by the positions of its rows.

    pull: since when it waits; NOWHERE before. granted: its lane's last grant. firsts: by incarnation the first call of
    each other one since it waits.
    """

    __slots__ = ("add", "firsts", "granted", "lane", "pull")

    def __init__(self, add: int, lane: int, granted: int | None) -> None:
        self.add = add
        self.lane = lane
        self.granted = granted
        self.pull = NOWHERE
        self.firsts: dict[int, int] = {}


class Group:
    """One group: its clients' lanes that were not called yet, and the grants of all lanes.

    place: of a row of the group. calls: those that may run in a later life of their lane. waiting: by client and
    incarnation. granted: by client and lane. moves: the seqs, last first, at which somebody moved an offset.
    """

    def __init__(self, rows: Rows, place: int, calls: Ints, findings: Findings) -> None:
        self.rows = rows
        self.place = place
        self.findings = findings
        self.calls = calls
        self.context: RunContext = rows.context_of(place)
        config = self.context.info.config
        self.cap_us = (config.continuous_ms + config.schedule_slack_ms) * MS
        self.lease_us = config.client_lease_ms * MS
        self.waiting: dict[int, dict[int, Waiting]] = {}
        self.granted: dict[tuple[int, int], int] = {}
        self.moves = sorted(self.context.moves.get(rows.name_of("group", place), ()), reverse=True)
        self.stakes = 0

    def take(self, now: int, place: int) -> None:
        """A row begins or ends."""
        while self.moves and self.moves[-1] < now:  # whoever waited starts anew
            self.moves.pop()
            self.waiting.clear()
        rows, kind = self.rows, ALL_KINDS[int(self.rows.kind[place])]
        client, lane, name = (
            int(rows.client[place]),
            int(rows.lane[place]),
            int(rows.incarnation[place]),
        )
        mine = self.waiting.setdefault(client, {})
        if kind is Kind.UNLOCK:
            self._out_of_line(mine, lane)
        elif kind is Kind.LOCK:
            self._answered(mine, client, lane, place)
        elif kind is Kind.ADD:
            mine[name] = Waiting(place, lane, self.granted.get((client, lane)))
        elif kind is Kind.DROP:
            mine.pop(name, None)
        elif kind is Kind.PULL:
            first = name in mine and mine[name].pull == NOWHERE
            if first and not self.context.is_filtered(rows.name_of("group", place), now):
                if self._works_still(client, lane, now):
                    del mine[name]
                else:
                    mine[name].pull = place
        elif kind is Kind.DELIVER:
            mine.pop(name, None)
            if any(each.lane == lane for each in mine.values()):  # of two lives at a time
                self.calls = np.append(self.calls, place)
            for each in mine.values():
                if each.pull != NOWHERE:
                    self._called(each, name, place, now)

    def _works_still(self, client: int, lane: int, now: int) -> bool:
        """Had a call of the lane at this client begun and not ended by now, in a process that is there still?"""
        rows, context = self.rows, self.context
        mine = self.calls[(rows.client[self.calls] == client) & (rows.lane[self.calls] == lane)]
        for call in mine[(rows.begin[mine] < now) & (rows.end[mine] > now)].tolist():
            client_id, group = rows.name_of("client_id", call), rows.name_of("group", call)
            if not context.is_of_an_old_life(client_id, group, int(rows.begin[call]), now):
                return True
        return False

    def _called(self, each: Waiting, name: int, place: int, now: int) -> None:
        """Another incarnation of the client is called while this one waits."""
        first = each.firsts.setdefault(name, place)
        if first == place:
            return
        self.stakes += 1
        started = self.rows.started
        if started[place] > started[first] + self.cap_us and self._in_line(each, place, now):
            roles = {"add": each.add, "pull": each.pull, "first": first, "later": place}
            self.findings.shown(Starved, roles)
            each.firsts[name] = place

    def _in_line(self, each: Waiting, place: int, now: int) -> bool:
        """Has the lane been in line all the time, up to this call?"""
        rows, context = self.rows, self.context
        client, group = rows.name_of("client_id", place), rows.name_of("group", place)
        if context.leaving_at(client, group, now):
            return False
        if context.client_died_between(client, int(rows.begin[each.add]), now):
            return False
        if context.paused_since(client, int(rows.ended[each.pull]), now):
            return False
        return (
            each.granted is None
            or int(rows.started[place]) <= int(rows.ended[each.granted]) + self.lease_us
        )

    def _answered(self, mine: dict[int, Waiting], client: int, lane: int, place: int) -> None:
        """A request for the lease was granted or refused. mine: of the client."""
        rows = self.rows
        if rows.outcome[place] != OK:
            self._out_of_line(mine, lane)
            return
        before = self.granted.get((client, lane))
        if before is not None and rows.ended[place] > rows.ended[before] + self.lease_us:
            self._out_of_line(mine, lane)
        self.granted[client, lane] = place
        for each in mine.values():
            if each.lane == lane:
                each.granted = place

    def _out_of_line(self, mine: dict[int, Waiting], lane: int) -> None:
        """The lane loses its place in line."""
        for name in [name for name, each in mine.items() if each.lane == lane]:
            del mine[name]


def judge(rows: Rows, findings: Findings) -> None:
    """Of the calls, most of a history, only those are gone through that begin while a lane of their client waits."""
    known = rows.text("incarnation") != NO_TEXT
    adds = np.flatnonzero(rows.are(Kind.ADD) & known)
    if not len(adds):
        return
    locks = rows.are(Kind.LOCK) & rows.ended_as(Outcome.OK, Outcome.REFUSED)
    pulls = (
        rows.are(Kind.PULL)
        & known
        & rows.ended_as(Outcome.OK)
        & (rows.value != NONE)
        & (rows.offset != NONE)
        & ~rows.found_nothing
    )
    at_begin = (rows.are(Kind.ADD, Kind.DROP) & known) | rows.are(Kind.UNLOCK)
    begins = np.concatenate(
        [np.flatnonzero(at_begin), _while_somebody_waits(rows, adds, _calls(rows, known))]
    )
    ends = np.flatnonzero(locks | (pulls & (rows.value > rows.offset)))
    where = np.concatenate([begins, ends])
    phase = np.concatenate([np.full(len(begins), BEGIN), np.full(len(ends), END)])
    seq = np.where(phase == BEGIN, rows.begin[where], rows.end[where])
    kept = seq < rows.clock_stepped(where)  # without ends that nobody saw, as well
    where, phase, seq = where[kept], phase[kept], seq[kept]
    group, _ = dense(rows.run[where], rows.group[where])
    states: dict[int, Group] = {}
    outliving = _outliving(rows, adds, known)
    for index in np.lexsort((phase, seq, group)).tolist():
        place, of = int(where[index]), int(group[index])
        state = states.get(of)
        if state is None:
            state = states[of] = Group(rows, place, outliving, findings)
        state.take(int(seq[index]), place)
    for state in states.values():
        if state.stakes:
            findings.at_stake_times(state.place, state.stakes)


def _calls(rows: Rows, known: Mask) -> Ints:
    """The first row of each listener call."""
    where = np.flatnonzero(rows.are(Kind.DELIVER) & known)
    of, op = rows.incarnation[where], rows.number("op_id")[where]
    order = by_time(of, rows.begin[where])
    of, op = of[order], op[order]
    first = np.ones(len(where), np.bool_)
    first[1:] = (of[1:] != of[:-1]) | (op[1:] != op[:-1])
    return where[order[first]]


def _outliving(rows: Rows, adds: Ints, known: Mask) -> Ints:
    """The calls during which a client added the same lane again."""
    calls = np.flatnonzero(rows.are(Kind.DELIVER) & known)
    both = np.concatenate([adds, calls])
    lane, _ = dense(rows.run[both], rows.group[both], rows.client[both], rows.lane[both])
    order = by_time(lane[: len(adds)], rows.begin[adds])
    if not len(calls):
        return calls
    scale = int(max(rows.begin.max(), rows.end[rows.end < NEVER].max(initial=0))) + 2
    places = lane[: len(adds)][order] * scale + rows.begin[adds][order]
    mine = lane[len(adds) :] * scale
    before = np.searchsorted(places, mine + rows.begin[calls], "right")
    until = np.searchsorted(places, mine + np.minimum(rows.end[calls], scale - 1), "right")
    found: Ints = calls[until > before]
    return found


def _while_somebody_waits(rows: Rows, adds: Ints, calls: Ints) -> Ints:
    """The calls that begin after a lane of their client was added, up to that lane's first call."""
    if not len(calls):
        return calls
    both = np.concatenate([adds, calls])
    client, _ = dense(rows.run[both], rows.group[both], rows.client[both])
    order = by_time(client[len(adds) :], rows.begin[calls])
    calls, of_call = calls[order], client[len(adds) :][order]
    begin = rows.begin[calls]
    chosen = np.zeros(len(calls), np.bool_)
    for add, code in zip(adds.tolist(), client[: len(adds)].tolist(), strict=True):
        low, high = np.searchsorted(of_call, [code, code + 1])
        low += int(np.searchsorted(begin[low:high], rows.begin[add]))
        own = np.flatnonzero(rows.incarnation[calls[low:high]] == rows.incarnation[add])
        chosen[low : low + int(own[0]) + 1 if len(own) else high] = True
    return calls[chosen]


def explain(found: Starved) -> str:
    pull, first, later = found.pull, found.first, found.later
    return (
        f"{who(pull)} had messages of {pull.lane} from {at(pull)} on, and no thread for them: its calls for "
        f"{first.lane} went on from {at(first)} to {at(later)}, {ms(later.started_us - first.started_us)}, in one turn"
    )
