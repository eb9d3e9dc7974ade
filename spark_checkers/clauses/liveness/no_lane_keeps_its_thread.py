"""LIV-3 over columns: only calls that begin while a lane of their client waits for its first one are gone through."""

from __future__ import annotations

from functools import partial

import numpy as np

from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.groupings import CLIENTS
from specs.facts.rows import KINDS, OUTCOMES, Rows
from specs.facts.run_context import RunContext
from specs.facts.segments import MS, NEVER, NO_TEXT, NONE, Ints, Mask, by_time, dense
from specs.vocabulary import Kind, Outcome

BEGIN, END = 0, 1
OK = OUTCOMES.index(Outcome.OK)


class Waiting:
    """One incarnation that was not called yet."""

    __slots__ = ("add", "firsts", "granted", "lane", "pull")

    def __init__(self, add: int, lane: int, granted: int | None) -> None:
        self.add = add
        self.lane = lane
        self.granted = granted
        self.pull = -1
        self.firsts: dict[int, int] = {}


class Group:
    """One group: its clients' lanes that were not called yet, and the grants of all lanes."""

    def __init__(self, rows: Rows, place: int, calls: Ints, findings: Findings) -> None:
        self.rows = rows
        self.place = place
        self.findings = findings
        self.calls = calls  # those that may run in a later life of their lane
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
        rows, kind = self.rows, KINDS[int(self.rows.kind[place])]
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
            first = name in mine and mine[name].pull < 0
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
                if each.pull >= 0:
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
        first = each.firsts.setdefault(name, place)
        if first == place:
            return
        self.stakes += 1
        started = self.rows.started
        if started[place] > started[first] + self.cap_us and self._in_line(each, place, now):
            self.findings.violation([each.add, each.pull, first, place])
            each.firsts[name] = place

    def _in_line(self, each: Waiting, place: int, now: int) -> bool:
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
        for name in [name for name, each in mine.items() if each.lane == lane]:
            del mine[name]


def kernel(rows: Rows, findings: Findings) -> None:
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
TWIN = Twin("LIV-3", COLUMNS, kernel, by=CLIENTS)
find = TWIN.find


# ---- what breaks the clause, planted


def starved_lane(trace: Trace) -> Changes:
    cap = (trace.info.config.continuous_ms + trace.info.config.schedule_slack_ms) * MS
    lease = trace.info.config.client_lease_ms * MS
    for rows in trace.works:
        pull = next(
            (
                row
                for row in rows
                if row.kind is Kind.PULL and (row.value or 0) > (row.queue_offset or 0)
            ),
            None,
        )
        gone = [row.seq_begin for row in rows if row.kind is Kind.DELIVER]
        if pull is None or pull.outcome is not Outcome.OK or pull.seq_end is None or not gone:
            continue
        until = (pull.ended_us or 0) + cap + min(cap, lease)
        others = [
            row
            for row in trace.of(Kind.DELIVER)
            if row.client_id == pull.client_id and row.group == pull.group and row.lane != pull.lane
            if row.seq_begin > pull.seq_end and row.started_us < until
        ]
        same = [row for row in others if row.incarnation == others[0].incarnation]
        if same and same[-1].started_us > same[0].started_us + cap:
            yield partial(
                lambda g, p, o: trace.without(g, [p.seq_begin, o.seq_begin]), gone, pull, same[0]
            )


DEFECTS = (
    Mutant(
        "starved-lane",
        "LIV-3",
        "a lane gets no thread while another goes on",
        starved_lane,
        generated=False,
    ),
)
