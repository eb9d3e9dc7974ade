"""The rows of whole keys as columns of numbers: what a kernel works on, and what it finds.

A kernel gets rows of one or many keys, each key whole, sorted by key and then by seq_begin. Texts are numbers
too: the code of a text within these rows, NO_TEXT for none. A missing number is NONE, and the end of an operation
that never ended is NEVER.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_checkers.segments import (
    NOWHERE,
    Ints,
    Mask,
    Timeline,
    dense,
    first_of_each,
    ints,
    positions,
)
from specs.clauses.catalogue import get
from specs.clauses.certainty import OF_THE_RUN, Mark, is_quiet, marks_of, told_of
from specs.clauses.context import is_pause_of_another
from specs.clauses.links import HoldUps, Sending, arrives_until, is_disturbed
from specs.clauses.rows import REQUEST_LEVELS, changed_nothing, is_unsure
from specs.faults import disk_full, duplicate, lingers_us
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.plan.config import Config
from specs.vocabulary import Key, Kind, Level, Outcome, Queue

if TYPE_CHECKING:
    from spark_checkers.lanes import Digest
    from spark_checkers.progress import Sends

NONE = int(np.iinfo(np.int64).min)
"""A number that is missing."""
NEVER = int(np.iinfo(np.int64).max) // 4
"""The end of an operation that is still open: later than every seq and every time."""
NO_TEXT = -1
MS = 1000
"""Microseconds in a millisecond."""

KINDS: tuple[Kind, ...] = tuple(Kind)
OUTCOMES: tuple[Outcome, ...] = tuple(Outcome)
LEVELS: tuple[Level, ...] = tuple(Level)
_CONTEXT_KINDS = (
    Kind.CRASH,
    Kind.LEAVE,
    Kind.JOIN,
    Kind.PAUSE,
    Kind.CLOCK_STEP,
    Kind.FAULT,
    Kind.ADD,
    Kind.RESET,
    Kind.TRIM,
)
_FRAMES_TWICE = duplicate.VERB
_DISTURBS = frozenset({Kind.CRASH, Kind.LEAVE, Kind.JOIN, Kind.PAUSE, Kind.CLOCK_STEP, Kind.FAULT})
_DISK_FULL = disk_full.VERB
Made = TypeVar("Made")
Looks = Mapping[tuple[Any, ...], int]
Adds = Mapping[tuple[str | None, str | None], tuple[int, Row]]


@dataclass(frozen=True)
class RunContext:
    """What every kernel knows of a run: its description, and its few rows about deaths, departures and clocks.

    The lists are in the order of seq_begin: (seq_begin, what the list's comment says).
    """

    info: RunInfo
    broker_died: Mapping[str, Sequence[int]] = field(default_factory=dict)  # seq of each crash
    client_state: Mapping[str, Sequence[tuple[int, Kind]]] = field(
        default_factory=dict
    )  # CRASH, LEAVE or JOIN
    work: Mapping[str, Sequence[tuple[int, str | None, Row]]] = field(
        default_factory=dict
    )  # LEAVE, JOIN, ADD: group
    paused: Mapping[str, Sequence[tuple[int, int]]] = field(
        default_factory=dict
    )  # until when, in µs
    clock_stepped: int = NEVER  # seq of the first step of a wall clock
    frames_twice: int = NEVER  # seq of the first fault of a link that made two frames of one
    broker_paused: Mapping[str, Sequence[tuple[int, int]]] = field(
        default_factory=dict
    )  # until when, in µs
    broker_deaths: Mapping[str, Sequence[tuple[int, int]]] = field(
        default_factory=dict
    )  # when, in µs
    lanes: Mapping[str, Sequence[int]] = field(
        default_factory=dict
    )  # seq at which a client first added each lane
    joined: Mapping[str, Sequence[tuple[int, str]]] = field(
        default_factory=dict
    )  # by group: which client
    resets: Mapping[Any, int] = field(
        default_factory=dict
    )  # by lane: seq of the first time somebody moved its offset
    moves: Mapping[str | None, Sequence[int]] = field(
        default_factory=dict
    )  # by group: the seq of each time somebody moved an offset
    unflushed: Mapping[str, Sequence[tuple[int, int]]] = field(
        default_factory=dict
    )  # each crash: safe until, in µs
    trims: Mapping[Queue, Sequence[tuple[int, int]]] = field(
        default_factory=dict
    )  # what is kept from then on
    epochs: Mapping[str, Sequence[tuple[int, int]]] = field(
        default_factory=dict
    )  # which epoch from then on
    seen: Mapping[str | None, frozenset[Kind]] | None = (
        None  # by group, the kinds that there are; None: not asked for
    )
    marks: Sequence[Mark] = ()  # when things happened that bear on every key, ascending
    removals: Mapping[str, Sequence[tuple[int, int]]] = field(
        default_factory=dict
    )  # by topic: when in µs, each
    hold_ups: HoldUps = field(default_factory=HoldUps)  # what stood in the way of requests
    marks_at: Mapping[int, Sequence[Mark]] = field(
        default_factory=dict
    )  # the same as `marks`, and of `adds`, by the row's seq
    adds: Adds = field(default_factory=dict)  # by group and topic: the first
    died_us: Mapping[int, int] = field(default_factory=dict)  # by the seq of a client's crash: when
    disturbed: Sequence[
        tuple[int, int]
    ] = ()  # by seq, until when (in µs) something had disturbed the group life
    removed_us: Mapping[Queue, Sequence[tuple[int, int]]] = field(
        default_factory=dict
    )  # what is kept, when said (µs)
    crowded: Mapping[str, int] = field(
        default_factory=dict
    )  # of a broker: seq of the first fault that filled its disk
    unsure: Mapping[str, int] = field(
        default_factory=dict
    )  # of a producer: the first seq at which a send of its ended and nobody knows how
    faults: Sequence[Row] = ()
    looks: Looks = field(
        default_factory=dict
    )  # seq of the last look at a queue (a reading) or a topic (a call)
    named_origin: int = (
        NEVER  # seq of the first dead letter that was read with the id of its origin
    )

    @classmethod
    def of(
        cls,
        info: RunInfo,
        rows: Iterable[Row],
        epochs: Mapping[str, Sequence[tuple[int, int]]] | None = None,
        seen: Mapping[str | None, frozenset[Kind]] | None = None,
        looks: Looks | None = None,
        named_origin: int = NEVER,
    ) -> RunContext:
        """From the run's rows of the context kinds (others are passed over), by seq_begin.

        epochs: of each broker, the seq of the first row that names an epoch, in that order. seen: the kinds that the
        history holds, by group; used only where nobody says what it records. looks: the seq of the last call of a topic
        (topic,), and of the last reading of a queue to its end (topic, broker, queue_id). named_origin: the seq of the
        first dead letter that was read with the id of its origin.
        """
        died: dict[str, list[int]] = {}
        state: dict[str, list[tuple[int, Kind]]] = {}
        paused: dict[str, list[tuple[int, int]]] = {}
        broker_paused: dict[str, list[tuple[int, int]]] = {}
        deaths: dict[str, list[tuple[int, int]]] = {}
        joined: dict[str, list[tuple[int, str]]] = {}
        lanes: dict[str, dict[Any, int]] = {}
        resets: dict[Any, int] = {}
        moves: dict[str | None, list[int]] = {}
        stands: dict[str, list[tuple[int, int]]] = {}
        unflushed: dict[str, list[tuple[int, int]]] = {}
        trims: dict[Queue, list[tuple[int, int]]] = {}
        removals: dict[str, list[tuple[int, int]]] = {}
        work: dict[str, list[tuple[int, str | None, Row]]] = {}
        marks: list[Mark] = []
        hold_ups = HoldUps()
        marks_at: dict[int, Sequence[Mark]] = {}
        adds: dict[tuple[str | None, str | None], tuple[int, Row]] = {}
        died_us: dict[int, int] = {}
        disturbed: list[tuple[int, int]] = []
        set_back_us = 0
        removed_us: dict[Queue, list[tuple[int, int]]] = {}
        crowded: dict[str, int] = {}
        unsure: dict[str, int] = {}
        faults: list[Row] = []
        stepped, twice = NEVER, NEVER
        for row in rows:
            if changed_nothing(row):
                continue
            if is_unsure(row) and row.client_id is not None and row.seq_end is not None:
                unsure[row.client_id] = min(row.seq_end, unsure.get(row.client_id, NEVER))
            if row.kind in (Kind.PAUSE, Kind.FAULT):
                hold_ups.take(row)
            if row.kind in _DISTURBS:
                calm_us = NEVER if row.ended_us is None else row.ended_us
                if row.kind is Kind.CLOCK_STEP and (row.value or 0) < 0:
                    set_back_us -= (row.value or 0) * MS
                if (
                    row.kind is Kind.CLOCK_STEP
                ):  # timers by a clock that was set back run on as much longer
                    calm_us += set_back_us
                calm_us += lingers_us(row)
                disturbed.append(
                    (row.seq_begin, max(calm_us, disturbed[-1][1] if disturbed else 0))
                )
            if row.kind is Kind.FAULT:
                faults.append(row)
            if info.clock_bound_us and row.kind in OF_THE_RUN:
                marks_at[row.seq_begin] = marks_of(row)
                marks.extend(marks_at[row.seq_begin])
            if row.kind in (Kind.LEAVE, Kind.JOIN, Kind.ADD) and row.client_id:
                work.setdefault(row.client_id, []).append((row.seq_begin, row.group, row))
            if row.kind is Kind.CRASH and row.broker and row.client_id in (None, row.broker):
                died.setdefault(row.broker, []).append(row.seq_begin)
                deaths.setdefault(row.broker, []).append((row.seq_begin, row.started_us))
                if info.config.flush == "async":
                    config = info.config
                    running_ms = config.flush_ms + config.schedule_slack_ms + config.disk_slack_ms
                    running_us = running_ms * MS
                    safe_us = _before(row.started_us, running_us, stands.get(row.broker, ()))
                    unflushed.setdefault(row.broker, []).append((row.seq_begin, safe_us))
            elif row.kind in (Kind.CRASH, Kind.LEAVE, Kind.JOIN) and row.client_id:
                state.setdefault(row.client_id, []).append((row.seq_begin, row.kind))
                if row.kind is Kind.CRASH:
                    died_us[row.seq_begin] = (
                        row.started_us if row.ended_us is None else row.ended_us
                    )
                if row.kind is Kind.JOIN and row.group:
                    joined.setdefault(row.group, []).append((row.seq_begin, row.client_id))
            elif row.kind is Kind.PAUSE and row.broker and row.client_id in (None, row.broker):
                until = NEVER if row.ended_us is None else row.ended_us
                broker_paused.setdefault(row.broker, []).append((row.seq_begin, until))
                stands.setdefault(row.broker, []).append((row.started_us, until))
            elif row.kind is Kind.PAUSE and row.client_id:
                until = NEVER if row.ended_us is None else row.ended_us
                paused.setdefault(row.client_id, []).append((row.seq_begin, until))
            elif row.kind is Kind.CLOCK_STEP:
                stepped = min(stepped, row.seq_begin)
            elif row.kind is Kind.FAULT and (row.detail or "").split(" ")[0] == _FRAMES_TWICE:
                twice = min(twice, row.seq_begin)
            elif (
                row.kind is Kind.FAULT and row.broker and (row.detail or "").startswith(_DISK_FULL)
            ):
                crowded.setdefault(row.broker, row.seq_begin)
            elif row.kind is Kind.ADD and row.client_id:
                lanes.setdefault(row.client_id, {}).setdefault(row.lane, row.seq_begin)
                if adds.setdefault((row.group, row.topic), (row.seq_begin, row))[1] is row:
                    marks_at[row.seq_begin] = marks_of(row)
            elif row.kind is Kind.RESET:
                resets.setdefault(row.lane, row.seq_begin)
                if row.level in REQUEST_LEVELS:
                    moves.setdefault(row.group, []).append(row.seq_begin)
            elif row.kind is Kind.TRIM and row.value is not None:
                told = trims.setdefault(row.queue, [])
                told.append((row.seq_begin, max(row.value, told[-1][1] if told else 0)))
                removals.setdefault(row.topic or "", []).append((row.seq_begin, row.started_us))
                removed_us.setdefault(row.queue, []).append((row.value, row.started_us))
        first = {client: sorted(seqs.values()) for client, seqs in lanes.items()}
        named = {broker: _rising(told) for broker, told in (epochs or {}).items()}
        if info.config.flush == "async":
            for broker, told in named.items():
                untold = _epoch_deaths(
                    died.get(broker, ()), told
                )  # nobody says when, so nothing before was safe
                unflushed.setdefault(broker, []).extend((seq, -NEVER) for seq in untold)
        return cls(
            info=info,
            broker_died=died,
            client_state=state,
            work=work,
            paused=paused,
            clock_stepped=stepped,
            frames_twice=twice,
            broker_paused=broker_paused,
            broker_deaths=deaths,
            lanes=first,
            joined=joined,
            resets=resets,
            moves=moves,
            unflushed=unflushed,
            trims=trims,
            epochs=named,
            seen=seen if told_of(info) is None else None,
            marks=sorted(marks, key=lambda mark: mark[0]),
            removals=removals,
            hold_ups=hold_ups,
            marks_at=marks_at,
            adds=adds,
            died_us=died_us,
            disturbed=disturbed,
            removed_us=removed_us,
            crowded=crowded,
            unsure=unsure,
            faults=faults,
            looks=looks or {},
            named_origin=named_origin,
        )

    @cached_property
    def disturbances(self) -> Ints:
        """The seqs of `disturbed`, and its times."""
        return ints(self.disturbed).reshape(-1, 2).T

    def calm_since_us(self, now: int) -> int:
        """Until when something that had begun by `now` disturbed the group life: a start, an end, a pause, a fault."""
        return next((until for seq, until in reversed(self.disturbed) if seq <= now), -1)

    def may_arrive_until(self, sending: Sending, until_us: int, now: int) -> int:
        """The last moment at which a request may have arrived, in µs; until_us: if nothing stood in its way."""
        bound_us, clocks_us = self._bounds_us
        return arrives_until(
            sending,
            until_us,
            self.hold_ups.since(sending.since_us - clocks_us, now),
            bound_us,
            clocks_us,
        )

    def is_disturbed(self, sending: Sending, until_us: int, now: int) -> bool:
        """Did anything that had begun by `now` stand in the way of a request, or of its answer, until then?"""
        bound_us, clocks_us = self._bounds_us
        hold_ups = self.hold_ups.since(sending.since_us - bound_us - clocks_us, now)
        return is_disturbed(sending, until_us, hold_ups, bound_us, clocks_us)

    @cached_property
    def _bounds_us(self) -> tuple[int, int]:
        """How late a request may be, and by how much clocks may differ."""
        return self.info.config.delay_bound_ms * MS, self.info.clock_bound_us

    def is_of_an_old_life(self, client: str, group: str, seq: int, now: int) -> bool:
        """Did the process that did something at `seq` die, or leave and begin anew in the group, since?"""
        if self.client_died_between(client, seq, now):
            return True
        left: Row | None = None
        for at, where, row in self.work.get(client, ()):
            if at > now:
                break
            here = where in (group, None)
            if row.kind is Kind.LEAVE:
                left = row if here else left
                continue
            anew = where == group or (where is None and row.kind is Kind.JOIN)
            if left is not None and (anew or left.group is None):
                if seq <= (left.seq_begin if left.seq_end is None else left.seq_end):
                    return True
                left = None
        return False

    def member_since(self, group: str, client: str, now: int) -> int | None:
        """The seq of the JOIN since which the client is a member of the group; None where it is none."""
        joined = next(
            (
                seq
                for seq, who in reversed(self.joined.get(group, ()))
                if seq <= now and who == client
            ),
            None,
        )
        if joined is None or self.client_died_between(client, joined, now):
            return None
        gone = any(
            joined < at <= now and row.kind is Kind.LEAVE and where in (group, None)
            for at, where, row in self.work.get(client, ())
        )
        return None if gone else joined

    def kept_from(self, queue: Queue, now: int) -> int:
        """The offset below which the broker had said by then that it keeps nothing."""
        return next((value for seq, value in reversed(self.trims.get(queue, ())) if seq <= now), 0)

    def removed_early(self, sent_us: int, queue: Queue, offset: int, now: int) -> bool:
        """Was the message, sent at that time, removed on purpose before it was as old as it has to be kept?"""
        config = self.info.config
        if (
            not config.keep_ms
            or self.clock_stepped <= now
            or self.crowded.get(queue.broker, NEVER) <= now
        ):
            return False
        when = next(
            (at_us for kept, at_us in self.removed_us.get(queue, ()) if offset < kept), NEVER
        )
        return when - sent_us + self.info.clock_bound_us < config.keep_ms * MS

    def fault_between(self, since_us: int, until_us: int, now: int, party: tuple[str, str]) -> bool:
        """Did a fault that had begun by `now` last at any time between these two, both included?

        party: the client and the broker that it is about; that somebody else was paused is none between them.
        """
        client, broker = party
        return any(
            fault.seq_begin <= now
            and fault.started_us <= until_us
            and (fault.ended_us is None or fault.ended_us >= since_us)
            and not is_pause_of_another(fault, client, broker)
            for fault in self.faults
        )

    def removed_of(self, topic: str, broker: str, now: int) -> bool:
        """Did the broker remove anything of the topic on purpose?"""
        told = (
            trims
            for queue, trims in self.trims.items()
            if queue.topic == topic and queue.broker == broker
        )
        return any(seq <= now for trims in told for seq, _ in trims)

    def trimmed_between(self, topic: str, after: int, until: int) -> bool:
        """Was anything removed from the topic on purpose, at a seq in (after, until]?"""
        told = (trims for queue, trims in self.trims.items() if queue.topic == topic)
        return any(after < seq <= until for trims in told for seq, _ in trims)

    def has_threads(self, client: str, now: int) -> bool:
        """Has the client at least twice as many threads as it had added lanes up to `now`?"""
        return 2 * bisect_right(self.lanes.get(client, ()), now) <= self.info.config.threads

    def broker_died_between(self, broker: str, after: int, until: int) -> bool:
        """Did the broker die at a seq in (after, until]: by a crash, or by a row that names a new epoch of it?"""
        seqs = self.broker_died.get(broker, ())
        if bisect_right(seqs, until) > bisect_right(seqs, after):
            return True
        return any(after < seq <= until for seq in self.epoch_deaths(broker))

    def epoch_deaths(self, broker: str) -> list[int]:
        """The seqs of the first rows of each later epoch, where no crash row has told of the broker's death before."""
        return _epoch_deaths(self.broker_died.get(broker, ()), self.epochs.get(broker, ()))

    def broker_died_since(self, broker: str, after: int, epoch: int, until: int) -> bool:
        """Likewise, since an operation that began at `after` and that names this epoch (NONE: none)."""
        if epoch == NONE:
            return self.broker_died_between(broker, after, until)
        seqs = self.broker_died.get(broker, ())
        if bisect_right(seqs, until) > bisect_right(seqs, after):
            return True
        named = self.epochs.get(broker, ())
        return next((later > epoch for seq, later in reversed(named) if seq <= until), False)

    def deaths_of(self, broker: str) -> list[int]:
        """The seqs by which the broker has died, each time: of crashes, and of rows that name a new epoch."""
        return sorted({*self.broker_died.get(broker, ()), *self.epoch_deaths(broker)})

    def client_died_between(self, client: str, after: int, until: int) -> bool:
        """Did the client crash at a seq in (after, until]? A new start in between does not undo it."""
        states = self.client_state.get(client, ())
        return any(kind is Kind.CRASH and after < seq <= until for seq, kind in states)

    def _state(self, client: str, now: int, *kinds: Kind) -> Kind | None:
        """The last of these kinds that the client showed up to `now`."""
        for seq, kind in reversed(self.client_state.get(client, ())):
            if seq <= now and kind in kinds:
                return kind
        return None

    def latest(self, client: str, kind: Kind, now: int) -> int | None:
        """The seq of the client's last CRASH, LEAVE or JOIN up to `now`."""
        states = self.client_state.get(client, ())
        return next((seq for seq, each in reversed(states) if seq <= now and each is kind), None)

    def newest_member(self, group: str, now: int) -> int | None:
        """The seq of the JOIN of the group's living member that started last."""
        for seq, client in reversed(self.joined.get(group, ())):
            if seq <= now and self.member_since(group, client, now) == seq:
                return seq
        return None

    def leave_at(self, client: str, group: str, now: int) -> Row | None:
        """The LEAVE of a client that has begun to shut down its work in the group, and has not begun anew there."""
        of_all: Row | None = None  # it leaves whatever it was in: over as soon as it works anywhere
        works = False
        for seq, where, row in reversed(self.work.get(client, ())):
            if seq > now:
                continue
            if row.kind is Kind.LEAVE:
                if where == group:
                    return row
                of_all = row if where is None and not works and of_all is None else of_all
            elif where == group or (where is None and row.kind is Kind.JOIN):
                return of_all
            else:
                works = True
        return of_all

    def leaving_at(self, client: str, group: str, now: int) -> bool:
        """Has the client begun to shut down its work in the group, and not begun anew there?"""
        return self.leave_at(client, group, now) is not None

    def left_us(self, client: str, group: str, now: int) -> int:
        """When the shutdown began that the client is in, in µs; NEVER when it is in none."""
        row = self.leave_at(client, group, now)
        return NEVER if row is None else row.started_us

    def paused_since(self, client: str, at_us: int, now: int) -> bool:
        """Was the client's latest pause, begun up to `now`, not over before `at_us`?"""
        return _paused_since(self.paused.get(client, ()), at_us, now)

    def broker_paused_since(self, broker: str, at_us: int, now: int) -> bool:
        """Was the broker's latest pause, begun up to `now`, not over before `at_us`?"""
        return _paused_since(self.broker_paused.get(broker, ()), at_us, now)


def _before(at_us: int, running_us: int, stands: Sequence[tuple[int, int]]) -> int:
    """The moment before `at_us` since which somebody ran for so long, who stood still from and until these times."""
    for since, until in reversed(stands):
        until = min(until, at_us)
        if at_us - until >= running_us:
            break
        running_us -= at_us - until
        at_us = min(at_us, since)
    return at_us - running_us


def _epoch_deaths(crashes: Sequence[int], named: Sequence[tuple[int, int]]) -> list[int]:
    """The seqs of the first rows of each later epoch, where no crash row has told of the broker's death before."""
    return [
        seq
        for (since, _), (seq, _) in itertools.pairwise(named)
        if bisect_right(crashes, seq) == bisect_right(crashes, since)
    ]


def _rising(named: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Those of (seq, epoch) whose epoch is later than all before."""
    rising: list[tuple[int, int]] = []
    for seq, epoch in sorted(named):
        if not rising or epoch > rising[-1][1]:
            rising.append((seq, epoch))
    return rising


def _paused_since(pauses: Sequence[tuple[int, int]], at_us: int, now: int) -> bool:
    for seq, until in reversed(pauses):
        if seq <= now:
            return until >= at_us
    return False


Runs = Mapping[str, RunContext]
"""By the run's name."""
_PLAIN = RunContext(RunInfo(""))
OFFSET_MOVED, _NOTHING_HERE = 21, (19, 20)
"""The codes of pulls that are told to go on elsewhere, or that found nothing."""
_CHANGE_NOTHING_REFUSED = frozenset({Kind.RESET.value, Kind.TRIM.value})
CONTEXT_KINDS = frozenset(_CONTEXT_KINDS)


_MADE_OF_KINDS = ("correction", "told_ahead", "digest", "digest_of_requests", "sends")
"""What `Rows` derives from the kinds of rows."""


class Rows:
    """Columns of rows, sorted by key and seq_begin. Derived columns are made when asked for, once."""

    def __init__(self, table: pa.Table, runs: Runs) -> None:
        self.table = table = without_refused(table)
        self.runs = runs
        self.size = int(table.num_rows)
        self._numbers: dict[str, Ints] = {}
        self._codes: dict[str, tuple[Ints, Any]] = {}
        self._words: dict[str, list[str]] = {}
        self._shared: dict[Any, Any] = {}

    def shared(self, make: Callable[[Rows], Made]) -> Made:
        """What several kernels ask of these rows, made once."""
        if make not in self._shared:
            self._shared[make] = make(self)
        found: Made = self._shared[make]
        return found

    def without(self, hidden: Mask) -> Rows:
        """The same rows, of which the hidden ones are of no kind: a kernel that goes by kinds does not see them."""
        found = Rows.__new__(Rows)
        kept = {name: made for name, made in self.__dict__.items() if name not in _MADE_OF_KINDS}
        found.__dict__.update(kept, _shared={})
        found.kind = np.where(hidden, len(KINDS), self.kind).astype(np.int8)
        return found

    # ---- columns

    def number(self, name: str) -> Ints:
        """A column of numbers; NONE where there is none."""
        found = self._numbers.get(name)
        if found is None:
            column = self.table.column(name)
            filled = column.fill_null(NONE) if column.null_count else column
            found = self._numbers[name] = filled.to_numpy().astype(np.int64, copy=False)
        return found

    def text(self, name: str) -> Ints:
        """A column of texts as codes; NO_TEXT where there is none."""
        return self.encoded(name)[0]

    def words(self, name: str) -> list[str]:
        """The texts of a column, by code."""
        if name not in self._words:
            self._words[name] = self.encoded(name)[1].to_pylist()
        return self._words[name]

    def code(self, name: str, word: str) -> int:
        """The code of a text in a column; one that no row has when it does not occur."""
        try:
            return self.words(name).index(word)
        except ValueError:
            return NO_TEXT - 1

    def name_of(self, name: str, position: int) -> str:
        """The text of one row; empty where there is none."""
        code = int(self.text(name)[position])
        return self.words(name)[code] if code != NO_TEXT else ""

    def encoded(self, name: str) -> tuple[Ints, Any]:
        """A column of texts as codes, and the texts by code as an Arrow array."""
        found = self._codes.get(name)
        if found is None:
            columns = set(self.table.column_names)
            is_source = name == "source_id" and {"message_id", "origin_id"} <= columns
            made = self._sources() if is_source else encoded(self.table.column(name))
            found = self._codes[name] = made
        return found

    def _sources(self) -> tuple[Ints, Any]:
        """As of the column that `with_source` makes, without telling the messages' ids apart once more."""
        codes, words = self.encoded("message_id")
        origin, named = self.encoded("origin_id")
        if not len(named):
            return codes, words
        known = pc.index_in(named, words)
        unknown = np.asarray(known.is_null())
        place = np.asarray(known.fill_null(0), np.int64)
        place[unknown] = len(words) + np.arange(int(unknown.sum()))
        says = np.append(np.asarray(pc.not_equal(named, "")), False)[origin]
        by_origin = (origin != NO_TEXT) & (says | (codes == NO_TEXT))
        merged = pa.concat_arrays(
            [words.cast(pa.string()), named.cast(pa.string()).filter(known.is_null())]
        )
        return np.where(by_origin, np.append(place, NO_TEXT)[origin], codes), merged

    def _enumerated(self, name: str, words: Sequence[str]) -> npt.NDArray[np.int8]:
        codes, present = self.text(name), self.words(name)
        numbers = [words.index(word) if word in words else len(words) for word in present]
        return np.asarray([*numbers, len(words)], np.int8)[codes]  # NO_TEXT takes the last

    @cached_property
    def kind(self) -> npt.NDArray[np.int8]:
        return self._enumerated("kind", KINDS)

    @cached_property
    def outcome(self) -> npt.NDArray[np.int8]:
        return self._enumerated("outcome", OUTCOMES)

    @cached_property
    def run(self) -> Ints:
        return self.text("run")

    @cached_property
    def begin(self) -> Ints:
        return self.number("seq_begin")

    @cached_property
    def end(self) -> Ints:
        """seq_end, NEVER while open."""
        end = self.number("seq_end")
        return np.where(end == NONE, NEVER, end)

    @cached_property
    def started(self) -> Ints:
        return self.number("started_us")

    @cached_property
    def ended(self) -> Ints:
        """ended_us, NEVER while open."""
        ended = self.number("ended_us")
        return np.where(ended == NONE, NEVER, ended)

    @cached_property
    def client(self) -> Ints:
        return self.text("client_id")

    @cached_property
    def group(self) -> Ints:
        return self.text("group")

    @cached_property
    def offset(self) -> Ints:
        return self.number("queue_offset")

    @cached_property
    def value(self) -> Ints:
        return self.number("value")

    def are(self, *kinds: Kind) -> Mask:
        """Is a row of one of these kinds?"""
        return _is_one_of(self.kind, [KINDS.index(kind) for kind in kinds])

    def ended_as(self, *outcomes: Outcome) -> Mask:
        """Does a row have one of these outcomes?"""
        return _is_one_of(self.outcome, [OUTCOMES.index(outcome) for outcome in outcomes])

    def of(self, *kinds: Kind) -> Ints:
        """Positions of the rows of these kinds."""
        return positions(self.are(*kinds))

    # ---- keys

    @cached_property
    def queue(self) -> Ints:
        """Number of the row's queue (run, topic, broker, queue_id). No queue_id is a queue_id of its own."""
        return self._numbered(
            self.run, self.text("topic"), self.text("broker"), self.number("queue_id")
        )

    @cached_property
    def lane(self) -> Ints:
        """Number of the row's lane, in the order of the queues. Rows of no group are a lane of their own."""
        return self._numbered(self.queue, self.group)

    @cached_property
    def incarnation(self) -> Ints:
        """Number of (lane, client, its life, incarnation): some number them for each client, or anew after a crash.

        Rows without one share a number. The ADD of a server's consumer names no client: it is of whoever comes first.
        """
        name = self.text("incarnation")
        client, life = (
            np.where(name != NO_TEXT, each, nobodys)
            for each, nobodys in ((self.client, NO_TEXT), (self._life, 0))
        )
        nobodys = positions((name != NO_TEXT) & (client == NO_TEXT))
        if len(nobodys):
            same, count = dense(self.lane, name)
            told = positions(client != NO_TEXT)
            told = told[np.argsort(-self.begin[told], kind="stable")]
            first = np.full(count, NOWHERE, np.int64)
            first[same[told]] = (
                told  # the last one that is written stays, which is the first one that began
            )
            nobodys = nobodys[first[same[nobodys]] != NOWHERE]
            theirs = first[same[nobodys]]
            client[nobodys], life[nobodys] = client[theirs], life[theirs]
        return self._numbered(self.lane, name, client, life)

    @cached_property
    def _life(self) -> Ints:
        """How often the row's client had crashed before it."""
        codes = {client: code for code, client in enumerate(self.words("client_id"))}
        crashes = [
            (number * len(codes) + codes[client], seq)
            for number, run in enumerate(self.words("run"))
            for client, states in self._context(run).client_state.items()
            for seq, kind in states
            if kind is Kind.CRASH and client in codes
        ]
        life = np.zeros(self.size, np.int64)
        if crashes:
            whose, seqs = ints(crashes).T
            has = np.zeros(len(self.words("run")) * len(codes) + 1, np.bool_)
            has[whose] = True
            mine = np.where(self.client == NO_TEXT, NO_TEXT, self.run * len(codes) + self.client)
            where = positions(has[mine])
            life[where] = Timeline(whose, seqs).count_before(mine[where], self.begin[where])
        return life

    def _numbered(self, *columns: Ints) -> Ints:
        return dense(*columns)[0] if self.size else np.zeros(0, np.int64)

    @cached_property
    def corrected(self) -> Mask:
        """Is this a commit that a broker's correction or a filter moved?"""
        if "detail" not in self.table.column_names:
            return np.zeros(self.size, np.bool_)
        return np.equal(self.text("detail"), self.code("detail", "corrected"))

    @cached_property
    def correction(self) -> Mask:
        """Does this commit report a broker's correction: is that said, or did a pull name its value before?

        A pull names a value when it is told to go on there: code 21, or nothing found and further ahead. The commits
        of the incarnation (where the pull names none: of the client) that repeat it count, up to the first other
        one after them, and until the incarnation begins anew.
        """
        found = self.corrected.copy()
        if not {"code", "value", "queue_offset", "incarnation", "client_id"}.issubset(
            self.table.column_names
        ):
            return found
        code, value = self.number("code"), self.value
        ahead = np.isin(code, _NOTHING_HERE) & (self.offset != NONE) & (value > self.offset)
        told = (
            self.are(Kind.PULL)
            & ((code == OFFSET_MOVED) | ahead)
            & (value != NONE)
            & (self.end < NEVER)
        )
        if not told.any():
            return found
        named = self.text("incarnation") != NO_TEXT
        also = (self.are(Kind.COMMIT) & (value != NONE) & ~found) | (self.are(Kind.ADD) & named)
        also &= np.isin(self.lane, self.lane[told])
        events = [(int(self.end[place]), 1, place) for place in np.flatnonzero(told).tolist()]
        events += [(int(self.begin[place]), 0, place) for place in np.flatnonzero(also).tolist()]
        adds = self.are(Kind.ADD)
        words: dict[tuple[int, ...], int] = {}  # by incarnation, or by lane and client
        repeated: set[tuple[int, ...]] = set()
        for _seq, is_pull, place in sorted(events):
            own: tuple[int, ...] = (int(self.incarnation[place]),)
            clients = (int(self.lane[place]), int(self.client[place]))
            if is_pull:
                by = own if named[place] else clients
                words[by] = int(value[place])
                repeated.discard(by)
            elif adds[place]:
                words.pop(own, None)
                repeated.discard(own)
            else:
                for by in (own, clients) if named[place] else (clients,):
                    if words.get(by) == value[place]:
                        repeated.add(by)
                        found[place] = True
                        break
                    if by in repeated:
                        repeated.discard(by)
                        del words[by]
        return found

    @cached_property
    def told_ahead(self) -> Mapping[int, Ints]:
        """By lane, the pulls that were answered with no message, and with an offset beyond the one they asked for."""
        code = self.number("code")
        told = (
            self.are(Kind.PULL)
            & (np.isin(code, _NOTHING_HERE) | (code == OFFSET_MOVED))
            & (self.end < NEVER)
        )
        where = np.flatnonzero(told & (self.offset != NONE) & (self.value > self.offset))
        lanes = self.lane[where]
        return {lane: where[lanes == lane] for lane in np.unique(lanes).tolist()}

    @cached_property
    def source(self) -> Ints:
        """The id of the message as it was first sent, as a code."""
        return self.text("source_id")

    def starts_with(self, name: str, prefix: str) -> Mask:
        """Does the text begin with the prefix?"""
        codes, words = self.text(name), self.words(name)
        return np.asarray([*(word.startswith(prefix) for word in words), False], np.bool_)[codes]

    @cached_property
    def digest(self) -> Digest:
        """The lanes, with their uneventful calls folded away."""
        from spark_checkers.lanes import Digest

        return Digest(self)

    @cached_property
    def digest_of_requests(self) -> Digest:
        """The lanes without their calls, of which nothing has to be folded."""
        from spark_checkers.lanes import LANE_KINDS, Digest

        return Digest(self, LANE_KINDS - {Kind.DELIVER})

    @cached_property
    def sends(self) -> Sends:
        """The acknowledged sends, by queue and offset."""
        from spark_checkers.progress import Sends

        return Sends(self)

    # ---- what is known of the runs

    def config(self, name: str, where: Ints) -> Ints:
        """A number of the configuration, for the rows at these positions."""
        per_run = [getattr(self._context(run).info.config, name) for run in self.words("run")]
        return ints(per_run)[self.run[where]] if per_run else np.zeros(len(where), np.int64)

    def closed_world(self, where: Ints) -> Mask:
        """Does the row's run hold every producer and consumer?"""
        per_run = [self._context(run).info.closed_world for run in self.words("run")]
        return (
            np.asarray(per_run, np.bool_)[self.run[where]]
            if per_run
            else np.zeros(len(where), np.bool_)
        )

    def frames_twice(self, where: Ints) -> Mask:
        """Did something on the way make two frames of one, in the row's run?"""
        per_run = [self._context(run).frames_twice != NEVER for run in self.words("run")]
        return (
            np.asarray(per_run, np.bool_)[self.run[where]]
            if per_run
            else np.zeros(len(where), np.bool_)
        )

    def clock_stepped(self, where: Ints) -> Ints:
        """The seq from which lease clauses stop judging the row's run; NEVER without a step."""
        per_run = [self._context(run).clock_stepped for run in self.words("run")]
        return ints(per_run)[self.run[where]] if per_run else np.zeros(len(where), np.int64)

    def queue_of(self, position: int) -> Queue:
        """The name of one row's queue."""
        number = int(self.number("queue_id")[position])
        return Queue(self.name_of("topic", position), self.name_of("broker", position), number)

    def config_of(self, position: int) -> Config:
        """The configuration of one row's run."""
        return self.context_of(position).info.config

    def was_disturbed(
        self, position: int, until_us: int, now: int, kind: Kind | None = None
    ) -> bool:
        """Did anything that had begun by `now` stand in the way of the row's request, or of its answer, until then?

        kind: of a request that its sender makes besides, from the same moment on.
        """
        asked = KINDS[int(self.kind[position])] if kind is None else kind
        client, broker = self.name_of("client_id", position), self.name_of("broker", position)
        sending = Sending(client, broker, asked, int(self.started[position]))
        return self.context_of(position).is_disturbed(sending, until_us, now)

    def context_of(self, position: int) -> RunContext:
        return self._context(self.words("run")[int(self.run[position])])

    def _context(self, run: str) -> RunContext:
        found = self.runs.get(run)
        return found if found is not None else RunContext(RunInfo(run))


def _is_one_of(codes: npt.NDArray[np.int8], wanted: Iterable[int]) -> Mask:
    """Is a code one of these few? Comparing bytes is quicker than a look-up by them."""
    found = np.zeros(len(codes), np.bool_)
    for code in wanted:
        found |= codes == code
    return found


def coded(column: Any) -> tuple[Ints, list[str]]:
    """A text column as (codes, texts by code)."""
    codes, words = encoded(column)
    return codes, words.to_pylist()


def encoded(column: Any) -> tuple[Ints, Any]:
    """A text column as (codes, texts by code): the texts as an Arrow array, of which few kernels ask."""
    if column.null_count == len(column):
        return np.full(len(column), NO_TEXT, np.int64), pa.array([], pa.string())
    if isinstance(column, pa.ChunkedArray):
        column = (
            column.unify_dictionaries()
            if pa.types.is_dictionary(column.type)
            else column.dictionary_encode()
        )
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # too long for one array
            column = pa.concat_arrays(column.chunks)
    elif not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    indices = column.indices
    codes = (indices.fill_null(NO_TEXT) if indices.null_count else indices).to_numpy(
        zero_copy_only=False
    )
    return codes.astype(np.int64), column.dictionary


class Findings:
    """What one clause found in some rows: how often it was at stake, and each violation's evidence.

    The rules for all clauses (`specs.clauses.certainty`) are applied here: rows of a group of which the history lacks
    what the clause needs count for nothing, and a violation is certain only where nothing unrecorded, nobody unseen
    and no clock may explain it.
    """

    __slots__ = ("_at_stake", "_clause", "_found", "_judged", "_unended", "clause", "rows")

    def __init__(self, rows: Rows, clause: str) -> None:
        self.rows = rows
        self.clause = clause
        self._clause = get(clause)
        self._at_stake = np.zeros(len(rows.words("run")) if rows.size else 0, np.int64)
        self._found: list[tuple[int, tuple[int, ...], tuple[int, ...], bool, str]] = []
        self._judged: Mask | None = None
        self._unended: Ints | None = None
        if any(
            rows.runs.get(run, _PLAIN).seen is not None
            for run in (rows.words("run") if rows.size else ())
        ):
            by_group = self._clause.key in (Key.LANE, Key.GROUP, Key.GROUP_KEY)
            of_group, count = dense(rows.run, rows.group)
            firsts = first_of_each(of_group, count).tolist()
            groups = (rows.name_of("group", place) if by_group else "" for place in firsts)
            has = np.asarray(list(map(self._has_needs, firsts, groups)), np.bool_)
            self._judged = has[of_group]

    def _has_needs(self, place: int, group: str) -> bool:
        seen = self.rows.context_of(place).seen
        if seen is None:
            return True
        everything: frozenset[Kind] = frozenset().union(*seen.values())
        if self._clause.missing(everything):
            return False
        mine = seen.get(group, frozenset())
        return not group or not self._clause.missing(mine | seen.get(None, frozenset()))

    def at_stake(self, where: Ints, times: Ints | None = None) -> None:
        """The clause was at stake at each of these positions (times: how often at each)."""
        if len(where) and self._judged is not None:
            times = None if times is None else times[self._judged[where]]
            where = where[self._judged[where]]
        if len(where) and len(self._at_stake) == 1:
            self._at_stake += len(where) if times is None else times.sum()
        elif len(where):
            counts = np.bincount(self.rows.run[where], weights=times, minlength=len(self._at_stake))
            self._at_stake += counts.astype(np.int64)

    def at_stake_times(self, place: int, times: int) -> None:
        """The clause was at stake that often in the run of the row at this position."""
        if self._judged is None or self._judged[place]:
            self._at_stake[self.rows.run[place]] += times

    def violated(
        self, *evidence: Ints, certain: Mask | None = None, name: str | None = None
    ) -> None:
        """One violation per index of these equally long arrays of positions. NOWHERE: no such evidence."""
        for index in range(len(evidence[0])):
            where = [int(column[index]) for column in evidence if column[index] != NOWHERE]
            self.violation(
                where, certain=True if certain is None else bool(certain[index]), name=name
            )

    def violation(
        self,
        where: Iterable[int],
        *,
        certain: bool = True,
        also: Iterable[int] = (),
        group: str | None = None,
        name: str | None = None,
    ) -> None:
        """One violation, shown by the rows at these positions. also: seq_begin of rows of the context.

        group: which one it is about, where only a row of the context says so. name: the finding's public name; the
        clause's only one by default.
        """
        places = sorted(set(where))
        seqs = tuple(sorted({*(int(self.rows.begin[place]) for place in places), *also}))
        if self._judged is not None and not self._stands_on_needs(places, group):
            return
        certain = certain and self._stands(places)
        self._found.append(
            (
                int(self.rows.run[places[0]]),
                seqs,
                tuple(places),
                certain,
                name or self._clause.findings[0],
            )
        )

    def _stands_on_needs(self, places: Sequence[int], group: str | None) -> bool:
        """Does the history hold what the clause needs of the group that the evidence is about?"""
        by_seq = sorted(places, key=lambda place: -int(self.rows.begin[place]))
        named = (self.rows.name_of("group", place) for place in by_seq)
        return self._has_needs(by_seq[0], group or next(filter(None, named), ""))

    def _stands(self, places: Sequence[int]) -> bool:
        """Is the violation certain, but for the clocks?"""
        rows = self.rows
        broker, epoch, calls = (
            rows.text("broker"),
            rows.number("broker_epoch"),
            rows.are(Kind.DELIVER),
        )
        return self._clause.stands_in(
            rows.context_of(places[0]).info,
            epochs=all(epoch[place] != NONE for place in places if broker[place] != NO_TEXT),
            ended=all(rows.end[place] != NEVER for place in places if calls[place])
            and self._knows_all(places),
        )

    def _knows_all(self, places: Sequence[int]) -> bool:
        """Had nobody in the evidence begun anything before, in its lane or queue, of which the end is missing?"""
        rows, clause = self.rows, self._clause
        if not clause.asks_what_a_client_knew or rows.context_of(places[0]).info.closed_world:
            return True
        if self._unended is None:
            self._unended = np.flatnonzero((rows.end == NEVER) & rows.are(*clause.kinds))
        if not len(self._unended):
            return True
        key = rows.lane if clause.key is Key.LANE else rows.queue
        last = max(int(rows.begin[place]) for place in places)
        before = self._unended[rows.begin[self._unended] < last]
        mine = {(int(key[place]), int(rows.client[place])) for place in places}
        return not any(
            (int(key[place]), int(rows.client[place])) in mine for place in before.tolist()
        )

    def _is_quiet(self, places: Sequence[int], seqs: Sequence[int]) -> bool:
        """Do no clocks other than their own lie too close to the evidence? seqs: its rows of the context as well."""
        rows, context = self.rows, self.rows.context_of(places[0])
        bound_us = context.info.clock_bound_us
        if not bound_us:
            return True
        evidence = self._marks(places)
        evidence += [mark for seq in seqs for mark in context.marks_at.get(seq, ())]
        near = [context.marks]
        if self._clause.key in (Key.LANE, Key.QUEUE):
            key = rows.lane if self._clause.key is Key.LANE else rows.queue
            wanted = rows.are(*self._clause.kinds) & np.isin(key, key[list(places)])
            near.append(
                sorted(self._marks(np.flatnonzero(wanted).tolist()), key=lambda mark: mark[0])
            )
        return all(is_quiet(evidence, others, bound_us) for others in near)

    def _marks(self, places: Sequence[int]) -> list[Mark]:
        rows = self.rows
        clocks, words = rows.text("clock"), [*rows.words("clock"), None]
        began = [(int(rows.started[place]), words[clocks[place]]) for place in places]
        return began + [
            (int(rows.ended[place]), words[clocks[place]])
            for place in places
            if rows.ended[place] != NEVER
        ]

    @property
    def opportunities(self) -> dict[str, int]:
        return {
            run: int(n)
            for run, n in zip(
                self.rows.words("run") if self.rows.size else [], self._at_stake, strict=True
            )
        }

    @property
    def violations(self) -> list[tuple[str, tuple[int, ...], bool, str]]:
        """(run, seq_begin of the evidence, certain, the finding's name)."""
        words = self.rows.words("run") if self.rows.size else []
        return [
            (words[run], seqs, certain and self._is_quiet(places, seqs), name)
            for run, seqs, places, certain, name in self._found
        ]

    @property
    def places(self) -> list[tuple[str | None, str | None, str | None, int | None, int]]:
        """Of each violation the group, topic, broker and queue of its last row that has them, and when it began."""
        return [self._place(places) for _run, _seqs, places, _certain, _name in self._found]

    def _place(
        self, places: Sequence[int]
    ) -> tuple[str | None, str | None, str | None, int | None, int]:
        rows = self.rows
        latest = sorted(places, key=lambda place: -int(rows.begin[place]))
        queue_id = rows.number("queue_id")
        texts = [
            next((rows.name_of(name, at) for at in latest if rows.text(name)[at] != NO_TEXT), None)
            for name in ("group", "topic", "broker")
        ]
        queue = next((int(queue_id[at]) for at in latest if queue_id[at] != NONE), None)
        return texts[0], texts[1], texts[2], queue, int(rows.started[latest[0]])


def without_refused(table: pa.Table) -> pa.Table:
    """The rows without those that no clause is shown: see `specs.clauses.rows.changed_nothing`."""
    if "outcome" not in table.column_names:
        return table
    kinds, words = coded(table.column("kind"))
    wanted = [word in _CHANGE_NOTHING_REFUSED for word in words]
    if not any(wanted):
        return table
    gone = np.asarray([*wanted, False], np.bool_)[kinds]
    outcomes, ends = coded(table.column("outcome"))
    gone &= np.asarray([*(end == Outcome.REFUSED.value for end in ends), False], np.bool_)[outcomes]
    return table.filter(pa.array(~gone)) if gone.any() else table


def keep(table: pa.Table, name: str, words: Iterable[str]) -> pa.Table:
    """The rows whose text is one of the words; the table itself when all are."""
    codes, texts = coded(table.column(name))
    wanted = set(words)
    if wanted.issuperset(texts) and not (len(codes) and int(codes.min()) == NO_TEXT):
        return table
    allowed = np.asarray([*(text in wanted for text in texts), False], np.bool_)
    return table.filter(pa.array(allowed[codes]))


def kept(table: pa.Table, wanted: Mask) -> pa.Table:
    """The rows of which the mask is true; a part of the table itself where they lie together."""
    where = positions(wanted)
    if len(where) and where[-1] - where[0] + 1 == len(where):
        return table.slice(int(where[0]), len(where))
    return table.filter(pa.array(wanted))
