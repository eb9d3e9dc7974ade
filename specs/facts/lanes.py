"""Lanes, with their millions of uneventful calls folded away: what a lane's state machine goes through.

Most calls of a lane tell the same: the client took the next messages, and finished them. A *stretch* is a run of
such calls with nothing else between: one incarnation, offsets that follow each other without a hole, every call
over before the next begins and ended in success (or, in manual mode, success or commit). Whole-array arithmetic
finds the stretches; a machine is given a stretch as one item and either takes it whole or, where its state does not
allow that, call by call. All other begins and ends it gets one by one, in their total order.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from specs.clauses.certainty import recorded
from specs.clauses.judging import Finding
from specs.clauses.links import Sending
from specs.clauses.rows import result_asks_again
from specs.facts.findings import Findings
from specs.facts.rows import KINDS, OUTCOMES, Rows
from specs.facts.run_context import RunContext
from specs.facts.segments import (
    NEVER,
    NO_TEXT,
    NONE,
    NOWHERE,
    Ints,
    Mask,
    by_time,
    dense,
    positions,
)
from specs.plan.config import Config
from specs.vocabulary import LISTENER_RESULTS, LISTENER_SUSPENDS, CommitMode, Kind, Outcome

LANE_KINDS = frozenset(
    {
        Kind.DELIVER,
        Kind.LOCK,
        Kind.UNLOCK,
        Kind.COMMIT,
        Kind.ADD,
        Kind.DROP,
        Kind.FETCH_OFFSET,
        Kind.DEAD_LETTER,
        Kind.SEND_BACK,
        Kind.RESET,
    }
)
"""Kinds whose begins and ends end a stretch."""
BEGIN, END, STRETCH = 0, 1, 2


class Op(NamedTuple):
    """One row as a machine sees it. place: its position in the rows. Texts are codes, NO_TEXT for none.

    corrected: who recorded the commit says that it reports a correction. correction: it does, as far as the pulls tell.
    """

    place: int
    begin: int
    end: int
    op: int
    kind: Kind
    client: int
    incarnation: int
    offset: int
    reconsume: int
    outcome: Outcome
    code: int
    manual: bool
    has_mode: bool
    suspend: int
    started: int
    ended: int
    value: int
    corrected: bool
    epoch: int
    correction: bool

    @property
    def over_us(self) -> int:
        """When it was over; where nobody saw its end, when it began."""
        return self.started if self.ended >= NEVER else self.ended


_make_op = partial(tuple.__new__, Op)  # `Op._make` without its count of the fields
Event = tuple[int, int, Op]
"""(when, BEGIN or END, the operation)."""
EXPANDED_ROWS = 1 << 16
"""Stretches of so many rows are remembered call by call."""
FEW = 8
"""So few rows are quicker made into operations one by one than column by column."""
OP_COLUMNS = (
    "op_id",
    "client_id",
    "incarnation",
    "queue_offset",
    "reconsume_times",
    "outcome",
    "code",
    "commit_mode",
    "suspend_ms",
    "started_us",
    "ended_us",
    "value",
    "detail",
)
"""The columns that an `Op` is made of."""


Ends = frozenset[tuple[Kind, Outcome]]
"""Ends of operations: of which kinds, and how they came out."""


def ends_as(kinds: Iterable[Kind], outcomes: Iterable[Outcome] = OUTCOMES) -> Ends:
    """The ends of these kinds with these outcomes."""
    return frozenset(itertools.product(kinds, outcomes))


def ended_before(earlier: Op, later: Op) -> bool:
    """Did `earlier` certainly end before `later` began?"""
    return earlier.end < later.begin


def asks_again(op: Op) -> bool:
    """Does the call's result ask for the same messages again?"""
    return result_asks_again(op.outcome, manual=op.manual)


def may_be_manual(op: Op) -> bool:
    """Was the call in manual mode, or did it end with a listener's result and nobody say in which?

    A log that lacks the column tells nothing of the mode. Where that decides, nothing is found.
    """
    return op.manual or (not op.has_mode and op.outcome in LISTENER_RESULTS)


def may_put_back(op: Op) -> bool:
    """Does the call's result put back all that was taken, as a manual ROLLBACK does, as far as anybody says?"""
    return op.outcome is Outcome.ROLLBACK and may_be_manual(op)


def may_put_back_unseen(op: Op) -> bool:
    """Did nobody see the call's result, nor say that it was in auto mode?"""
    return op.outcome not in LISTENER_RESULTS and (op.manual or not op.has_mode)


def may_have_put_back(op: Op) -> bool:
    """May the call have put back all that was taken, seen or unseen?"""
    return may_put_back_unseen(op) or may_put_back(op)


LEAST_MS, MOST_MS = 10, 30_000


def wait_ms(op: Op, default_ms: int) -> int:
    """The pause that the ended call asks for."""
    return own_wait_ms(default_ms if op.suspend < 0 else op.suspend)


def own_wait_ms(wished_ms: int) -> int:
    """The pause that is made of what was wished for."""
    return min(max(wished_ms, LEAST_MS), MOST_MS)


class Stretch(NamedTuple):
    """Uneventful calls. first, last: the rows that began first and last (`last` also ends last); head: of the last call
    the row that began first.

    Offsets first.offset..stop-1, once each. earliest_us, latest_us: of the begins, on the monotonic clock.
    finished_to: the offsets below it are finished by these calls (in manual mode: up to the last commit).
    """

    first: Op
    last: Op
    head: Op
    calls: int
    rows: int
    stop: int
    finished_to: int
    earliest_us: int
    latest_us: int
    events: tuple[int, int]


Part = tuple[Sequence[Event], Stretch | None]
"""Some calls of a stretch one by one, and the stretch of what follows them."""


class Digest:
    """The items of all lanes of some rows, of these kinds. Made once, shared by all machines."""

    def __init__(self, rows: Rows, kinds: Iterable[Kind] = LANE_KINDS) -> None:
        self.rows = rows
        where = rows.of(*kinds)
        closed = np.flatnonzero(rows.end[where] < NEVER)
        row = np.concatenate([where, where[closed]])
        phase = np.concatenate([np.zeros(len(where), np.int8), np.ones(len(closed), np.int8)])
        time = np.where(phase == BEGIN, rows.begin[row], rows.end[row])
        order = by_time(rows.lane[row], 2 * time + phase)
        self.row: Ints = row[order]
        self.phase = phase[order]
        self.lane: Ints = rows.lane[self.row]
        self.kind = rows.kind[self.row]
        self._expanded: dict[int, Sequence[Event]] = {}
        self._split: dict[int, tuple[list[Part], Iterator[Part]]] = {}
        self._room = EXPANDED_ROWS
        self._apart: dict[frozenset[Kind], Mapping[int, list[Op]]] = {}
        self._lanes: dict[tuple[Any, ...], list[LaneItems]] = {}
        self._fold()

    def _fold(self) -> None:
        rows, row, phase, lane = self.rows, self.row, self.phase, self.lane
        size = len(row)
        deliver = self.kind == KINDS.index(Kind.DELIVER)
        counted = deliver & (rows.end[row] < NEVER)
        depth = np.cumsum(np.where(counted, np.where(phase == BEGIN, 1, -1), 0))
        before = depth - np.where(counted, np.where(phase == BEGIN, 1, -1), 0)
        new_lane = np.ones(size, np.bool_)
        new_lane[1:] = lane[1:] != lane[:-1]
        # An episode: from the begin of a call while none runs until none runs again. Other events are their own.
        inside = counted | (before > 0)
        starts = new_lane | ~inside | (counted & (phase == BEGIN) & (before == 0))
        episode = np.cumsum(starts) - 1
        count = int(episode[-1]) + 1 if size else 0
        first = np.flatnonzero(starts)
        length = np.diff(np.append(first, size))
        plain = self._plain()
        clean = np.ones(count, np.bool_)
        clean[episode[~(deliver & plain[row])]] = False
        # One call per episode: its rows begin one after another with the next offset each, then they all end.
        head = first[episode]
        begins = phase == BEGIN
        nth = np.arange(size, dtype=np.int64) - head
        half = length[episode] // 2
        of_head = row[head]
        number = rows.number("op_id")
        same = number[row] == number[of_head]
        for column in (rows.incarnation, rows.client, rows.outcome, self._manual, self._told):
            same &= column[row] == column[of_head]
        same &= begins == (nth < half)
        same &= ~begins | (rows.offset[row] == rows.offset[of_head] + nth)
        clean[episode[~same]] = False
        # ... and that is all there is of the call: no row of it lies elsewhere.
        clean &= 2 * _rows_of_call(lane, rows.number("op_id")[row], begins)[first] == length
        clean &= row[first + length - 1] == row[first + np.maximum(length // 2 - 1, 0)]
        self._join(episode, first, length, clean)

    def _plain(self) -> Mask:
        """Deliveries that succeeded at the first attempt: nothing about them needs a closer look."""
        rows = self.rows
        manual = rows.text("commit_mode") == rows.code("commit_mode", CommitMode.MANUAL)
        done = rows.ended_as(Outcome.SUCCESS, Outcome.COMMIT)
        times = rows.number("reconsume_times")
        plain = (
            done
            & (rows.offset >= 0)
            & (rows.client != NO_TEXT)
            & (rows.text("incarnation") != NO_TEXT)
        )
        self._manual = manual
        self._told = rows.text("commit_mode") != NO_TEXT
        uncounted: Mask = plain & ((times == 0) | (times == NONE))
        return uncounted

    def _join(self, episode: Ints, first: Ints, length: Ints, clean: Mask) -> None:
        """Neighbouring clean episodes that follow each other become one stretch."""
        rows, row = self.rows, self.row
        count = len(first)
        last = first + length - 1
        self.is_item = np.ones(len(row), np.bool_)
        self.stretches: list[Stretch] = []
        self.stretch_of = np.full(len(row), -1, np.int64)
        if not count:
            return
        calls_rows = length // 2
        head_row = row[first]
        manual, told = self._manual[head_row], self._told[head_row]
        first_offset = rows.offset[head_row]
        next_offset = first_offset + calls_rows
        joined = np.zeros(count, np.bool_)
        joined[1:] = (
            clean[1:]
            & clean[:-1]
            & (self.lane[first[1:]] == self.lane[first[:-1]])
            & (rows.incarnation[head_row[1:]] == rows.incarnation[head_row[:-1]])
            & (rows.client[head_row[1:]] == rows.client[head_row[:-1]])
            & (manual[1:] == manual[:-1])
            & (told[1:] == told[:-1])
            & (first_offset[1:] == next_offset[:-1])
            & (rows.number("op_id")[head_row[1:]] != rows.number("op_id")[head_row[:-1]])
        )
        joined &= clean
        heads = np.flatnonzero(clean & ~joined)
        if not len(heads):
            return
        group = np.cumsum(clean & ~joined) - 1
        member = np.flatnonzero(clean)
        of = group[member]
        tail = np.full(len(heads), -1, np.int64)
        tail[of] = member
        event_from, event_to = first[heads], last[tail] + 1
        in_stretch = clean[episode]
        self.stretch_of[in_stretch] = group[episode[in_stretch]]
        self.is_item = ~in_stretch
        self.is_item[event_from] = True
        commits = rows.ended_as(Outcome.COMMIT)[row[first]]
        finishes = np.where(manual & ~commits, NONE, next_offset)
        finished = np.maximum.reduceat(np.where(clean, finishes, NONE), heads)
        bounds = np.stack([event_from, event_to], axis=1).ravel()
        started = np.append(rows.started[row], 0)
        earliest = np.minimum.reduceat(started, bounds)[::2]
        latest = np.maximum.reduceat(started, bounds)[::2]
        last_begin = first[tail] + calls_rows[tail] - 1
        firsts = self.ops(row[event_from])
        lasts = self.ops(row[last_begin])
        heads_of_last = lasts[:]
        several = np.flatnonzero(calls_rows[tail] > 1)
        for index, op in zip(several.tolist(), self.ops(row[first[tail[several]]]), strict=True):
            heads_of_last[index] = op
        n_calls = (tail - heads + 1).tolist()
        n_rows = ((event_to - event_from) // 2).tolist()
        stops = next_offset[tail].tolist()
        low = first_offset[heads]
        finished_to = np.where(finished == NONE, low, finished).tolist()
        self.stretches = [
            Stretch(*each)
            for each in zip(
                firsts,
                lasts,
                heads_of_last,
                n_calls,
                n_rows,
                stops,
                finished_to,
                earliest.tolist(),
                latest.tolist(),
                zip(event_from.tolist(), event_to.tolist(), strict=True),
                strict=True,
            )
        ]

    @cached_property
    def _columns(self) -> tuple[npt.NDArray[Any], ...]:
        """What an `Op` is made of, but for its place."""
        rows = self.rows
        unnamed = rows.text("incarnation") == NO_TEXT
        return (
            rows.begin,
            rows.end,
            rows.number("op_id"),
            np.asarray([*KINDS, None], object)[rows.kind],  # some may be hidden
            rows.client,
            np.where(unnamed, NO_TEXT, rows.incarnation),
            rows.offset,
            rows.number("reconsume_times"),
            np.asarray(OUTCOMES, object)[rows.outcome],
            rows.number("code"),
            self._manual,
            self._told,
            rows.number("suspend_ms"),
            rows.started,
            rows.ended,
            rows.value,
            rows.corrected,
            rows.number("broker_epoch"),
            rows.correction,
        )

    def ops(self, where: Ints) -> list[Op]:
        """The rows at these positions, as a machine sees them."""
        if len(where) < FEW:
            columns = self._columns
            return [_make_op((at, *[each.item(at) for each in columns])) for at in where.tolist()]
        columns = (where, *(column[where] for column in self._columns))
        return list(map(_make_op, zip(*(column.tolist() for column in columns), strict=True)))

    def expand(self, stretch: Stretch) -> Sequence[Event]:
        """The begins and ends of a stretch, one by one."""
        found = self._expanded.get(stretch.events[0])
        if found is None:
            found = self._events(*stretch.events)
            if self._room >= stretch.rows:  # several machines go through the same stretches
                self._room -= stretch.rows
                self._expanded[stretch.events[0]] = found
        return found

    def calls_of(self, taken: Iterable[Op | Stretch]) -> Iterator[Op]:
        """The calls, of a stretch those after its last commit, one by one."""
        for each in taken:
            if isinstance(each, Op):
                yield each
            else:
                yield from self.of_stretch(each, each.finished_to)

    def of_stretch(self, stretch: Stretch, start: int, stop: int | None = None) -> list[Op]:
        """The rows of a stretch at the offsets start..stop-1, or to its end: each offset has one, in their order."""
        first, last = stretch.events
        begun = self.row[first:last][self.phase[first:last] == BEGIN]
        low = stretch.first.offset
        return self.ops(begun[start - low : None if stop is None else stop - low])

    def finished_by(self, stretch: Stretch, until_us: int) -> Op | None:
        """The last row of a stretch that its call had finished by then (in manual mode: committed)."""
        first, last = stretch.events
        row = self.row[first:last][self.phase[first:last] == END]
        done = self.rows.ended[row] <= until_us
        if stretch.first.manual:
            done &= self.rows.outcome[row] == OUTCOMES.index(Outcome.COMMIT)
        return next(iter(self.ops(row[np.flatnonzero(done)[-1:]])), None)

    def bounds_of_calls(self, stretch: Stretch) -> tuple[Ints, Ints]:
        """Of each call of a stretch the row that began first, and the one that began last, which also ends last."""
        first, last = stretch.events
        begun = self.row[first:last][self.phase[first:last] == BEGIN]
        call = self.rows.number("op_id")[begun]
        other = call[1:] != call[:-1]
        return begun[np.append(True, other)], begun[np.append(other, True)]

    def _events(self, start: int, stop: int) -> Sequence[Event]:
        """The begins and ends of whole calls of a stretch."""
        row, phase = self.row[start:stop], self.phase[start:stop]
        begun = row[phase == BEGIN]
        op_of = dict(zip(begun.tolist(), self.ops(begun), strict=True))
        ops = [op_of[place] for place in row.tolist()]
        return [
            (op.end if what == END else op.begin, what, op)
            for what, op in zip(phase.tolist(), ops, strict=True)
        ]

    def split(self, stretch: Stretch) -> Iterator[Part]:
        """A stretch in parts: begins and ends of its first calls (one, two, four, ...), and the stretch of the rest.

        A part is made when it is asked for: most machines take the rest after the first call.
        """
        start = stretch.events[0]
        if start not in self._split:
            if self._room < stretch.rows:
                yield from self._parts(stretch)
                return
            self._room -= stretch.rows
            self._split[start] = ([], self._parts(stretch))
        done, more = self._split[start]
        for at in itertools.count():
            if at == len(done):
                part = next(more, None)
                if part is None:
                    return
                done.append(part)
            yield done[at]

    def _parts(self, stretch: Stretch) -> Iterator[Part]:
        start, stop = stretch.events
        begun = self.row[start:stop][self.phase[start:stop] == BEGIN]
        op = self.rows.number("op_id")[begun]
        calls = np.flatnonzero(np.append(True, op[1:] != op[:-1]))
        cut = low = 0
        while low < len(begun):
            cut = 2 * cut + 1
            high = int(calls[cut]) if cut < len(calls) else len(begun)
            rest = None if cut >= len(calls) else self._rest(stretch, begun[high:], cut)
            yield self._events(start + 2 * low, start + 2 * high), rest
            low = high

    def _rest(self, stretch: Stretch, begun: Ints, cut: int) -> Stretch:
        """What is left of a stretch without its first calls. begun: the rows of the calls that are left."""
        (first,) = self.ops(begun[:1])
        finished = stretch.finished_to if first.manual else stretch.stop
        started = self.rows.started[begun]
        return stretch._replace(
            first=first,
            calls=stretch.calls - cut,
            rows=len(begun),
            finished_to=max(first.offset, finished),
            earliest_us=int(started.min()),
            latest_us=int(started.max()),
            events=(stretch.events[1] - 2 * len(begun), stretch.events[1]),
        )

    @cached_property
    def _item_at(self) -> Ints:
        """The events that are items."""
        return positions(self.is_item)

    @cached_property
    def _items(self) -> npt.NDArray[Any]:
        """Of every event that is an item of its own (phase, when, op), of every stretch (STRETCH, when it begins, it);
        else nothing."""
        items = np.empty(len(self.row), object)
        single = np.flatnonzero(self.is_item & (self.stretch_of < 0))
        distinct, index = np.unique(self.row[single], return_inverse=True)
        ops = self.ops(distinct)
        for place, what, at in zip(
            single.tolist(), self.phase[single].tolist(), index.tolist(), strict=True
        ):
            op = ops[at]
            items[place] = (what, op.end if what == END else op.begin, op)
        for stretch in self.stretches:
            items[stretch.events[0]] = (STRETCH, stretch.first.begin, stretch)
        return items

    def lanes(
        self,
        kinds: Iterable[Kind],
        asides: Iterable[Kind] = (),
        *,
        ends: Ends | None = None,
        grouped: bool = True,
    ) -> Sequence[LaneItems]:
        """Every lane with its items of these kinds (a stretch counts as DELIVER).

        asides: kinds whose begins are listed apart, for they cut no stretch. ends: see `Machine.ENDS`. grouped: leave
        out rows of no group.
        """
        key = (frozenset(kinds), frozenset(asides), ends, grouped)
        if key not in self._lanes:  # several machines go through the same items
            self._lanes[key] = list(self._of_kinds(key[0], key[1], ends, grouped))
        return self._lanes[key]

    def _of_kinds(
        self, kinds: frozenset[Kind], asides: frozenset[Kind], ends: Ends | None, grouped: bool
    ) -> Iterator[LaneItems]:
        rows = self.rows
        apart = self._asides(asides)
        wanted = np.zeros(len(KINDS) + 1, np.bool_)
        wanted[[KINDS.index(kind) for kind in kinds]] = True
        chosen = self._item_at[wanted[self.kind[self._item_at]]]
        if ends is not None:
            chosen = chosen[(self.phase[chosen] == BEGIN) | self._among_ends(chosen, ends)]
        if not len(chosen):
            return
        items = self._items[chosen].tolist()
        lane = self.lane[chosen]
        starts = np.flatnonzero(np.append(True, lane[1:] != lane[:-1])).tolist()
        places = self.row[chosen[starts]].tolist()
        for place, start, stop in zip(places, starts, [*starts[1:], len(chosen)], strict=True):
            if grouped and rows.group[place] == NO_TEXT:
                continue
            found = LaneItems(self, place, items[start:stop])
            found.asides = apart.get(int(rows.lane[place]), [])
            yield found

    def _among_ends(self, chosen: Ints, ends: Ends) -> Mask:
        """Of each event: would it, as an end, be one of these?"""
        wanted = np.zeros((len(KINDS) + 1, len(OUTCOMES) + 1), np.bool_)
        for kind, outcome in ends:
            wanted[KINDS.index(kind), OUTCOMES.index(outcome)] = True
        found: Mask = wanted[self.kind[chosen], self.rows.outcome[self.row[chosen]]]
        return found

    @cached_property
    def _kinds(self) -> Mapping[int, set[Kind]]:
        found: dict[int, set[Kind]] = {}
        for number in np.unique(self.lane * (len(KINDS) + 1) + self.kind).tolist():
            lane, kind = divmod(number, len(KINDS) + 1)
            if kind < len(KINDS):
                found.setdefault(lane, set()).add(KINDS[kind])
        return found

    def kinds_of(self, lane: int) -> Collection[Kind]:
        """The kinds of what happens in a lane."""
        return self._kinds.get(lane, ())

    def _asides(self, kinds: frozenset[Kind]) -> Mapping[int, list[Op]]:
        """By lane, the rows of these kinds. Made once: several machines ask for the same ones."""
        found = self._apart.get(kinds)
        if found is None:
            where = positions(self.rows.are(*kinds))
            where = where[np.argsort(self.rows.lane[where], kind="stable")]
            lanes, starts = np.unique(self.rows.lane[where], return_index=True)
            parts = np.split(where, starts)[1:]  # the first lies before all
            found = self._apart[kinds] = dict(
                zip(lanes.tolist(), map(self.ops, parts), strict=True)
            )
        return found


def digest_of_requests(rows: Rows) -> Digest:
    """The lanes without their calls, of which nothing has to be folded."""
    return Digest(rows, LANE_KINDS - {Kind.DELIVER})


def _rows_of_call(lane: Ints, op: Ints, begins: Mask) -> Ints:
    """Of each event that is a begin: how many rows the operation has in its lane."""
    at = positions(begins)
    lane, op = lane[at], op[at]
    same = lane[1:] == lane[:-1]
    if (op[1:] < op[:-1])[same].any():
        call, _ = dense(lane, op)
    else:  # numbered as they begin: what belongs together lies together
        call = np.append(0, np.cumsum(~same | (op[1:] != op[:-1])))[: len(at)]
    found = np.zeros(len(begins), np.int64)
    found[at] = np.bincount(call)[call]
    return found


class LaneItems:
    """One lane: what happens in it, and what is known of its run."""

    __slots__ = (
        "asides",
        "broker",
        "context",
        "digest",
        "group",
        "items",
        "kinds",
        "place",
        "topic",
    )

    def __init__(self, digest: Digest, place: int, items: list[tuple[int, int, Any]]) -> None:
        rows = digest.rows
        self.digest = digest
        self.place = place
        self.items = items
        self.context: RunContext = rows.context_of(place)
        broker = int(rows.text("broker")[place])
        self.broker = rows.words("broker")[broker] if broker != NO_TEXT else ""
        group = int(rows.group[place])
        self.group = rows.words("group")[group] if group != NO_TEXT else ""
        topic = int(rows.text("topic")[place])
        self.topic = rows.words("topic")[topic] if topic != NO_TEXT else ""
        self.asides: list[Op] = []
        self.kinds = digest.kinds_of(int(rows.lane[place]))

    def name(self, client: int) -> str:
        """A client's id, from its code; empty where a row names nobody."""
        return self.digest.rows.words("client_id")[client] if client != NO_TEXT else ""


class Machine:
    """The state of one lane for one clause. A subclass says what a begin and an end do, and may take stretches."""

    ENDS: Ends | None = None
    """The ends that `ends` looks at, None for all: a lane is gone through without the others."""
    STAKE: Kind | None = None
    """Where a lane has nothing of this kind, nothing is at stake in it, and it is not gone through."""

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        self.lane = lane
        self.context = lane.context
        self.config: Config = lane.context.info.config
        self.broker = lane.broker
        self.findings = findings
        self.stakes = 0
        self.now = 0
        self.inside: list[Op] = []  # the asides that begin during the stretch

    def begins(self, op: Op) -> None:
        """An operation begins."""

    def ends(self, op: Op) -> None:
        """An operation ends."""

    def takes(self, stretch: Stretch) -> bool:
        """Take a stretch as a whole; False: it has to be gone through. Must change nothing when False.

        `self.inside` holds what else began during the stretch, where its clause asked for such asides.
        """
        return False

    def finish(self) -> None:
        """The lane's rows are over."""

    def found(self, *ops: Op | None, certain: bool = True, name: str | None = None) -> None:
        self.findings.violation(
            [op.place for op in ops if op is not None], certain=certain, name=name
        )

    def broken(
        self,
        kind: type[Finding],
        also: Mapping[str, Any] | None = None,
        *,
        of_context: Mapping[str, int | Sequence[int]] | None = None,
        certain: bool = True,
        **roles: Op | Sequence[Op] | None,
    ) -> None:
        """One finding of this kind: its operations by their roles. of_context: see `Findings.shown`."""
        self.findings.shown(
            kind,
            {
                name: NOWHERE
                if part is None
                else part.place
                if isinstance(part, Op)
                else [op.place for op in part]
                for name, part in roles.items()
            },
            also,
            of_context=of_context,
            certain=certain,
        )

    def broker_died_since(self, op: Op) -> bool:
        """Did the lane's broker die after the operation began, by a crash or by a later epoch?"""
        return self.context.broker_died_since(self.broker, op.begin, op.epoch, self.now)

    def client_died_since(self, client: int, op: Op) -> bool:
        """Did the client crash after the operation began, whether or not it started again?"""
        return self.context.client_died_between(self.lane.name(client), op.begin, self.now)

    def keeps_nothing_before(self, offset: int) -> bool:
        """Had the broker announced that it keeps nothing before that offset of the lane's queue?"""
        queue = self.lane.digest.rows.queue_of(self.lane.place)
        return offset <= self.context.kept_from(queue, self.now)

    def untold_letters(self) -> bool:
        """May messages of the lane be given up without a word? Only where no recorder says that it tells, from the
        first row on."""
        info = self.context.info
        return (
            info.begins_late
            or info.records is None
            or Kind.DEAD_LETTER not in (recorded(info) or ())
        )

    def may_be_given_up(self, op: Op) -> bool:
        """May the message of this call, which is over, be finished by having been given up, as far as the call goes?"""
        return not op.manual and self.used_up(op)

    def used_up(self, op: Op) -> bool:
        """Likewise, in whatever mode: in manual mode it is not finished by that, but only taken."""
        limit = self.config.max_reconsume_times
        at_limit = limit >= 0 and (op.reconsume == NONE or op.reconsume >= limit)
        return at_limit and op.outcome in LISTENER_SUSPENDS

    def may_be_leaving(self, client: int) -> bool:
        """Is the client shutting down its work in the lane's group, or does nobody record who does?"""
        known = recorded(self.context.info)
        return (known is not None and Kind.LEAVE not in known) or self.leaving(client)

    def is_of_an_old_life(self, client: int, op: Op) -> bool:
        """Did the process that did this die, or leave and begin anew in the lane's group, since?"""
        return self.context.is_of_an_old_life(
            self.lane.name(client), self.lane.group, op.begin, self.now
        )

    def are_of_two_processes(self, one: Op, other: Op) -> bool:
        """Do both, of one client id, name their client's process, and two of them?"""
        process = self.lane.digest.rows.own_process
        mine, others = int(process[one.place]), int(process[other.place])
        return NO_TEXT not in (mine, others) and mine != others

    def is_of_the_process_before(self, op: Op, later: Op) -> bool:
        """Is the process that did this certainly gone, and did the next of its name do what came later?

        For clauses that have the column `process`.
        """
        rows = self.lane.digest.rows
        code = int(rows.text("process")[op.place])
        if code != int(rows.text("process")[later.place]):
            return False
        process = rows.words("process")[code] if code != NO_TEXT else None
        return self.context.is_of_the_process_before(
            self.lane.name(op.client), self.lane.group, op.begin, process, self.now
        )

    def sending(self, op: Op) -> Sending:
        """The request on its way to the lane's broker."""
        return Sending(self.lane.name(op.client), self.broker, op.kind, op.started)

    def was_disturbed(self, client: int, kind: Kind, since_us: int, until_us: int) -> bool:
        """Did anything stand in the way of a request to the lane's broker that was sent then, until then (µs)?"""
        sending = Sending(self.lane.name(client), self.broker, kind, since_us)
        return self.context.is_disturbed(sending, until_us, self.now)

    def may_arrive_until(self, op: Op, until_us: int) -> int:
        """The last moment at which a request may have arrived, in µs; until_us: if nothing stood in its way."""
        return self.context.may_arrive_until(self.sending(op), until_us, self.now)

    def leaving(self, client: int) -> bool:
        """Is the client shutting down its work in the lane's group?"""
        return self.context.leaving_at(self.lane.name(client), self.lane.group, self.now)

    def paused_since(self, client: int, at_us: int) -> bool:
        """Was the client paused at any time from `at_us` on?"""
        return self.context.paused_since(self.lane.name(client), at_us, self.now)


def each_lane(
    machine: type[Machine], kinds: Iterable[Kind], *, lease: bool, asides: Iterable[Kind] = ()
) -> Callable[[Rows, Findings], None]:
    """Judges lane by lane, each by a machine. lease: it stops at a step of a wall clock.

    asides: kinds whose begins the machine wants too, although they cut no stretch (see `Machine.takes`).
    """
    wanted, apart = frozenset(kinds), frozenset(asides)
    return partial(_run_machines, machine=machine, wanted=wanted, apart=apart, lease=lease)


def _run_machines(
    rows: Rows,
    findings: Findings,
    *,
    machine: type[Machine],
    wanted: frozenset[Kind],
    apart: frozenset[Kind],
    lease: bool,
) -> None:
    digest = rows.shared(Digest) if Kind.DELIVER in wanted else rows.shared(digest_of_requests)
    ends = machine.ENDS if machine.ends is not Machine.ends else frozenset()
    for lane in digest.lanes(wanted, apart, ends=ends):
        if machine.STAKE is not None and machine.STAKE not in lane.kinds:
            continue
        state = machine(lane, findings)
        until = lane.context.clock_stepped if lease else NEVER
        run_lane(state, lane, until)
        if until == NEVER:
            state.finish()
        if state.stakes:
            findings.at_stake_times(lane.place, state.stakes)


def _call_by_call(state: Machine, parts: Iterable[Part]) -> None:
    """Go through a stretch that the machine doesn't take whole, until it takes what is left of it."""
    begins, ends = state.begins, state.ends
    for events, rest in parts:
        for state.now, phase, op in events:
            (ends if phase == END else begins)(op)
        if rest is not None:
            state.now = rest.first.begin
            if state.takes(rest):
                return


def run_lane(state: Machine, lane: LaneItems, until: int) -> None:
    """Lead a machine through a lane, up to the seq `until`."""
    if lane.asides or until < NEVER:
        _run_with_asides(state, lane, until)
        return
    begins, ends, takes = state.begins, state.ends, state.takes
    for what, state.now, item in lane.items:
        if what == BEGIN:
            begins(item)
        elif what == END:
            ends(item)
        elif not takes(item):
            _call_by_call(state, lane.digest.split(item))


def _run_with_asides(state: Machine, lane: LaneItems, until: int) -> None:
    begins, ends, takes = state.begins, state.ends, state.takes
    asides, aside = [op for op in lane.asides if op.begin < until], 0
    starts = [*(op.begin for op in asides), NEVER]
    for what, now, item in lane.items:
        while starts[aside] < now:
            state.now = starts[aside]
            begins(asides[aside])
            aside += 1
        if now >= until:
            return
        state.now = now
        if what == BEGIN:
            begins(item)
        elif what == END:
            ends(item)
        else:
            inside = aside
            while starts[inside] < item.last.end:
                inside += 1
            state.inside = asides[aside:inside]
            if state.inside or until < NEVER:
                if until < NEVER or not takes(item):
                    among = [(op.begin, BEGIN, op) for op in state.inside]
                    events = [*lane.digest.expand(item), *among]
                    for at, phase, op in sorted(events, key=lambda event: event[:2]):
                        if at >= until:
                            return
                        state.now = at
                        (ends if phase == END else begins)(op)
            elif not takes(item):
                _call_by_call(state, lane.digest.split(item))
            aside = inside
    for op in asides[aside:]:
        state.now = op.begin
        begins(op)
