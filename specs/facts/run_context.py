"""What every judge knows of a run: its description, and its few rows about deaths, departures, pauses and clocks.

A judge asks as of a moment: `now` is a seq, and what began later is not known yet.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from specs.clauses.certainty import OF_THE_RUN, Mark, marks_of, recorded, told_of
from specs.clauses.context import (
    CONTEXT_KINDS,
    DISTURBS,
    LOOKS,
    is_pause_of_another,
    takes_everything,
)
from specs.clauses.links import HoldUps, Sending, arrives_until, is_disturbed
from specs.clauses.rows import REQUEST_LEVELS, changed_nothing, is_astray, is_unsure
from specs.clauses.stored import is_marker
from specs.facts.columns import MS, NEVER, NONE, Ints
from specs.faults import disk_full, duplicate, lingers_us
from specs.history.evidence import names_of
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.vocabulary import DLQ_PREFIX, Kind, Outcome, Queue

Looks = Mapping[tuple[Any, ...], int]
Moments = dict[str, list[tuple[int, int]]]
"""By name, in the order of seq_begin: (seq_begin, a time in µs)."""


@dataclass
class RunContext:
    """What is known of one run. Lists are in the order of seq_begin, which comes first in what they hold."""

    info: RunInfo
    seen: Mapping[str | None, frozenset[Kind]] | None = None
    """By group, the kinds that there are; None: somebody says what is recorded."""
    looks: Looks = field(default_factory=dict)
    """The seq of the last look at a topic (topic,), a call, or at a queue (topic, broker, queue_id), a reading."""
    named_origin: int = NEVER
    """Seq of the first dead letter that was read with the id of its origin."""
    clock_stepped: int = NEVER
    """Seq of the first step of a wall clock."""
    frames_twice: int = NEVER
    """Seq of the first fault of a link that made two frames of one."""

    # Of a broker
    broker_died: dict[str, list[int]] = field(default_factory=dict)
    broker_deaths: Moments = field(default_factory=dict)
    """Its crashes, and when."""
    broker_paused: Moments = field(default_factory=dict)
    """Until when."""
    broker_stood: Moments = field(default_factory=dict)
    """Its pauses as (from, until), in µs."""
    unflushed: Moments = field(default_factory=dict)
    """Its crashes, and until when everything was safe."""
    epochs: Moments = field(default_factory=dict)
    """Which epoch from then on."""
    crowded: dict[str, int] = field(default_factory=dict)
    """Seq of the first fault that filled its disk; of one that names nobody, and so may mean any, under no name."""

    # Of a client
    client_state: dict[str, list[tuple[int, Kind]]] = field(default_factory=dict)
    """CRASH, LEAVE or JOIN."""
    ended: set[str] = field(default_factory=set)
    """Whose process died, or left."""
    work: dict[str, list[tuple[int, str | None, Row]]] = field(default_factory=dict)
    """LEAVE, JOIN or ADD, and of which group."""
    paused: Moments = field(default_factory=dict)
    """Until when."""
    lanes: dict[str, dict[Any, int]] = field(default_factory=dict)
    """Seq at which it first added each lane."""
    died_us: dict[int, int] = field(default_factory=dict)
    """By the seq of a crash: when."""
    died_as: dict[int, str | None] = field(default_factory=dict)
    """By the seq of a crash: which process its row names."""
    unsure: dict[str, int] = field(default_factory=dict)
    """The first seq at which a send of its ended and nobody knows how."""

    # Of a group, a lane, a queue or a topic
    joined: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    """By group: which client."""
    filters: dict[str | None, int] = field(default_factory=dict)
    """By group, None where a row names none: seq of the first start that told of a filter."""
    resets: dict[Any, int] = field(default_factory=dict)
    """By lane: seq of the first time that somebody moved its offset."""
    slow_resets: list[Row] = field(default_factory=list)
    """Those that took time, or were never answered."""
    moves: dict[str | None, list[int]] = field(default_factory=dict)
    """By group: seq of each time that somebody moved an offset."""
    adds: dict[tuple[str | None, str | None], tuple[int, Row]] = field(default_factory=dict)
    """By group and topic: the first."""
    trims: dict[Queue, list[tuple[int, int]]] = field(default_factory=dict)
    """What is kept from then on."""
    removed_us: dict[Queue, list[tuple[int, int]]] = field(default_factory=dict)
    """As (what is kept, when that was said in µs)."""
    astray: set[tuple[str | None, str | None, str | None]] = field(default_factory=set)
    """Topic, broker and key of sends that name no queue."""
    removals: dict[str, list[tuple[int, int, str]]] = field(default_factory=dict)
    """By topic: (seq_begin, when, by which broker)."""

    # Of the run
    faults: list[Row] = field(default_factory=list)
    hold_ups: HoldUps = field(default_factory=HoldUps)
    """What stood in the way of requests."""
    disturbed: list[tuple[int, int]] = field(default_factory=list)
    """Until when (µs) something had disturbed the group life."""
    marks: list[Mark] = field(default_factory=list)
    """When things happened that bear on every key, ascending."""
    marks_at: dict[int, Sequence[Mark]] = field(default_factory=dict)
    """The same, and of `adds`, by the row's seq."""
    _set_back_us: int = 0

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
        history holds, by group; used only where nobody says what it records. looks, named_origin: as they are kept.
        """
        found = cls(info, seen if told_of(info) is None else None, looks or {}, named_origin)
        for row in rows:
            if not changed_nothing(row):
                found._take(row)
        found.marks.sort(key=lambda mark: mark[0])
        for broker, told in (epochs or {}).items():
            named = found.epochs[broker] = _rising(told)
            if info.config.flush == "async":  # nobody says when, so nothing before was safe
                untold = _epoch_deaths(found.broker_died.get(broker, ()), named)
                found.unflushed.setdefault(broker, []).extend((seq, -NEVER) for seq in untold)
        return found

    @classmethod
    def of_rows(cls, info: RunInfo, rows: Sequence[Row]) -> RunContext:
        """From all rows of one run, by seq_begin."""
        epochs: dict[str, dict[int, int]] = {}
        seen: dict[str | None, set[Kind]] = {None: set()}
        looks: dict[tuple[Any, ...], int] = {}
        named_origin = NEVER
        for row in rows:
            seen.setdefault(row.group, set()).add(row.kind)
            if row.broker_epoch is not None:
                epochs.setdefault(row.broker or "", {}).setdefault(row.broker_epoch, row.seq_begin)
            if row.kind not in LOOKS or row.level not in REQUEST_LEVELS:
                continue
            if row.kind is Kind.DELIVER:
                looks[(row.topic,)] = row.seq_begin
                continue
            if is_marker(row) and row.outcome is Outcome.OK:
                looks[tuple(row.queue)] = row.seq_begin
            if row.origin_id is not None and (row.topic or "").startswith(DLQ_PREFIX):
                named_origin = min(named_origin, row.seq_begin)
        return cls.of(
            info,
            (row for row in rows if row.kind in CONTEXT_KINDS or is_unsure(row) or is_astray(row)),
            {
                broker: [(seq, epoch) for epoch, seq in firsts.items()]
                for broker, firsts in epochs.items()
            },
            {group: frozenset(kinds) for group, kinds in seen.items()},
            looks,
            named_origin,
        )

    def _take(self, row: Row) -> None:
        if is_astray(row):
            self.astray.add((row.topic, row.broker, row.sharding_key))
        if is_unsure(row) and row.client_id is not None and row.seq_end is not None:
            self.unsure[row.client_id] = min(row.seq_end, self.unsure.get(row.client_id, NEVER))
        if row.kind in DISTURBS:
            self._is_disturbed(row)
        if self.info.clock_bound_us and row.kind in OF_THE_RUN:
            self.marks_at[row.seq_begin] = marks_of(row)
            self.marks.extend(self.marks_at[row.seq_begin])
        if row.kind in (Kind.LEAVE, Kind.JOIN, Kind.ADD) and row.client_id:
            self.work.setdefault(row.client_id, []).append((row.seq_begin, row.group, row))
        match row.kind:
            case Kind.CRASH | Kind.LEAVE | Kind.JOIN:
                self._comes_or_goes(row)
            case Kind.PAUSE:
                self._stands(row)
            case Kind.CLOCK_STEP:
                self.clock_stepped = min(self.clock_stepped, row.seq_begin)
            case Kind.FAULT:
                self._fails(row)
            case Kind.ADD if row.client_id:
                mine = self.lanes.setdefault(row.client_id, {})
                mine.setdefault(row.lane, row.seq_begin)
                if self.adds.setdefault((row.group, row.topic), (row.seq_begin, row))[1] is row:
                    self.marks_at[row.seq_begin] = marks_of(row)
            case Kind.RESET:
                self.resets.setdefault(row.lane, row.seq_begin)
                if row.level in REQUEST_LEVELS:
                    self.moves.setdefault(row.group, []).append(row.seq_begin)
                    if row.seq_end != row.seq_begin:
                        self.slow_resets.append(row)
            case Kind.TRIM if row.value is not None:
                told = self.trims.setdefault(row.queue, [])
                told.append((row.seq_begin, max(row.value, told[-1][1] if told else 0)))
                removals = self.removals.setdefault(row.topic or "", [])
                removals.append((row.seq_begin, row.started_us, row.broker or ""))
                self.removed_us.setdefault(row.queue, []).append((row.value, row.started_us))

    def _is_disturbed(self, row: Row) -> None:
        calm_us = _until_us(row)
        if row.kind is Kind.CLOCK_STEP:  # timers by a clock that was set back run on as much longer
            self._set_back_us += max(0, -(row.value or 0)) * MS
            calm_us += self._set_back_us
        calm_us += lingers_us(row)
        before_us = self.disturbed[-1][1] if self.disturbed else 0
        self.disturbed.append((row.seq_begin, max(calm_us, before_us)))

    def _comes_or_goes(self, row: Row) -> None:
        seq, client = row.seq_begin, row.client_id
        if row.kind is Kind.CRASH and _is_of_a_broker(row):
            broker = row.broker or ""
            self.broker_died.setdefault(broker, []).append(seq)
            self.broker_deaths.setdefault(broker, []).append((seq, row.started_us))
            config = self.info.config
            if config.flush == "async":
                running_us = (
                    config.flush_ms + config.schedule_slack_ms + config.disk_slack_ms
                ) * MS
                stood = self.broker_stood.get(broker, ())
                safe_us = _before(row.started_us, running_us, stood)
                self.unflushed.setdefault(broker, []).append((seq, safe_us))
        elif client:
            self.client_state.setdefault(client, []).append((seq, row.kind))
            if row.kind is not Kind.JOIN:
                self.ended.add(client)
            if row.kind is Kind.CRASH:
                self.died_us[seq] = row.started_us if row.ended_us is None else row.ended_us
                self.died_as[seq] = row.process
            if row.kind is Kind.JOIN and not takes_everything(row.view):
                self.filters.setdefault(row.group, seq)
            if row.kind is Kind.JOIN and row.group:
                self.joined.setdefault(row.group, []).append((seq, client))

    def _stands(self, row: Row) -> None:
        self.hold_ups.take(row)
        until_us = _until_us(row)
        if _is_of_a_broker(row):
            broker = row.broker or ""
            _pause(self.broker_paused.setdefault(broker, []), row)
            self.broker_stood.setdefault(broker, []).append((row.started_us, until_us))
        elif row.client_id:
            _pause(self.paused.setdefault(row.client_id, []), row)

    def _fails(self, row: Row) -> None:
        self.hold_ups.take(row)
        self.faults.append(row)
        detail = row.detail or ""
        if detail.split(" ")[0] == duplicate.VERB:
            self.frames_twice = min(self.frames_twice, row.seq_begin)
        elif detail.startswith(disk_full.VERB):
            brokers = {name for name in (row.broker or "", *names_of(row)) if name}
            for broker in brokers or {""}:
                self.crowded.setdefault(broker, row.seq_begin)

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

    @property
    def in_time_us(self) -> int:
        """How long a request may take, with the slack of a timer, and what clocks may differ by."""
        return sum(self._bounds_us) + self.info.config.schedule_slack_ms * MS

    def is_of_an_old_life(self, client: str, group: str, seq: int, now: int) -> bool:
        """Did the process that did something at `seq` die, or leave and begin anew in the group, since?"""
        if client not in self.ended:
            return False
        return self.client_died_between(client, seq, now) or any(
            anew <= now and seq <= left for anew, left in self.returns(client, group)
        )

    def returns(self, client: str, group: str) -> list[tuple[int, int]]:
        """Where a client began anew in a group that it had left: the seqs at which it did, and up to which it left."""
        found: list[tuple[int, int]] = []
        left: Row | None = None
        for at, where, row in self.work.get(client, ()):
            if row.kind is Kind.LEAVE:
                left = row if where in (group, None) else left
                continue
            anew = where == group or (where is None and row.kind is Kind.JOIN)
            if left is not None and (anew or left.group is None):
                found.append((at, left.seq_begin if left.seq_end is None else left.seq_end))
                left = None
        return found

    @cached_property
    def begun_anew(self) -> dict[str, list[tuple[int, str | None]]]:
        """By client: the seqs at which it works again in a group that it had left, or (None) in whichever."""
        found: dict[str, list[tuple[int, str | None]]] = {}
        for client, work in self.work.items():
            if client not in self.ended:
                continue
            leaving: set[str | None] = set()
            for seq, group, row in work:
                if row.kind is Kind.LEAVE:
                    leaving.add(group)
                    continue
                came = {None, group} if group is not None or row.kind is Kind.ADD else set(leaving)
                for each in came & leaving:
                    found.setdefault(client, []).append((seq, each))
                leaving -= came
        return found

    def is_of_the_process_before(
        self, client: str, group: str, seq: int, process: str | None, now: int
    ) -> bool:
        """Is the process that did something at `seq` certainly gone: did rows that name it tell of the client's last
        death, or of a shutdown that was over before the client worked in the group again?"""
        death = self.latest(client, Kind.CRASH, now)
        if death is not None and death > seq and self.died_as[death] == process:
            return True
        under_way: dict[str | None, Row] = {}
        over: dict[str | None, Row] = {}
        for at, where, row in self.work.get(client, ()):
            if at > now:
                break
            if row.kind is Kind.LEAVE:
                under_way[where] = row
                continue
            anew = where == group or (where is None and row.kind is Kind.JOIN)
            for key in (None, group) if anew else (None,):
                leave = under_way.pop(key, None)
                if leave is not None and leave.seq_end is not None and leave.seq_end < at:
                    over[key] = leave
        return any(
            leave.process == process and seq <= (leave.seq_end or 0)
            for leave in (over.get(None), over.get(group))
            if leave is not None
        )

    def is_filtered(self, group: str, now: int) -> bool:
        """Had a member of the group told by `now` that it does not subscribe to every message?"""
        return self.filtered_from(group) <= now

    def filtered_from(self, group: str) -> int:
        """The seq from which on a member of the group has told so; NEVER without one."""
        return min(self.filters.get(group, NEVER), self.filters.get(None, NEVER))

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
        return None if joined is None or self.is_gone(group, client, joined, now) else joined

    def is_gone(self, group: str, client: str, since: int, now: int) -> bool:
        """Did the client die, or begin to leave the group, in (since, now]? Coming again changes nothing."""
        return self.client_died_between(client, since, now) or any(
            since < at <= now and row.kind is Kind.LEAVE and where in (group, None)
            for at, where, row in self.work.get(client, ())
        )

    def kept_from(self, queue: Queue, now: int) -> int:
        """The offset below which the broker had said by then that it keeps nothing."""
        return next((value for seq, value in reversed(self.trims.get(queue, ())) if seq <= now), 0)

    def may_hold_astray(self, queue: Queue, key: str | None = None) -> bool:
        """May a send that names no queue lie there, whenever it began? key: one of this key."""
        return any(
            topic == queue.topic and broker in (None, queue.broker) and key in (None, its)
            for topic, broker, its in self.astray
        )

    def is_crowded(self, broker: str, now: int) -> bool:
        """Had a fault filled the broker's disk by then?"""
        return any(self.crowded.get(name, NEVER) <= now for name in (broker, ""))

    def removed_early(self, sent_us: int, queue: Queue, offset: int, now: int) -> bool:
        """Was the message, sent at that time, removed on purpose before it was as old as it has to be kept?"""
        config = self.info.config
        if not config.keep_ms or self.clock_stepped <= now or self.is_crowded(queue.broker, now):
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

    def shows(self, topic: str) -> set[Queue]:
        """The queues of the topic that rows of the context name: lanes that were added, and what was removed from."""
        found = {queue for queue in self.trims if queue.topic == topic}
        for lanes in self.lanes.values():
            found |= {
                Queue(topic, lane.broker, lane.queue_id) for lane in lanes if lane.topic == topic
            }
        return found

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
        return self.death_after(client, after) <= until

    def death_after(self, client: str, after: int) -> int:
        """The seq of the first crash of the client after that seq; or NEVER."""
        states = self.client_state.get(client, ())
        return next((seq for seq, kind in states if kind is Kind.CRASH and seq > after), NEVER)

    def has_a_client_died(self, until: int) -> bool:
        """Did any client crash up to a seq?"""
        return any(seq <= until for seq in self.died_us)

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

    def departures_of(self, client: str, group: str, now: int) -> list[Row]:
        """The LEAVEs of a client that shuts down its work in the group and has not begun anew there, the last first."""
        found: list[Row] = []
        works = False
        for seq, where, row in reversed(self.work.get(client, ())):
            if seq > now:
                continue
            if row.kind is Kind.LEAVE:
                # One that names no group leaves whatever it was in: over as soon as it works anywhere.
                if where == group or (where is None and not works):
                    found.append(row)
            elif where == group or (where is None and row.kind is Kind.JOIN):
                break
            else:
                works = True
        return found

    def leave_at(self, client: str, group: str, now: int) -> Row | None:
        """The LEAVE of a client that has begun to shut down its work in the group, and has not begun anew there."""
        return next(iter(self.departures_of(client, group, now)), None)

    def leaving_at(self, client: str, group: str, now: int) -> bool:
        """Has the client begun to shut down its work in the group, and not begun anew there?"""
        return self.leave_at(client, group, now) is not None

    def paused_since(self, client: str, at_us: int, now: int) -> bool:
        """Was any of the client's pauses, begun up to `now`, not over before `at_us`?"""
        return _paused_since(self.paused.get(client, ()), at_us, now)

    def tells(self, *kinds: Kind) -> bool:
        """Would the history tell of these, as far as anybody says?"""
        known = recorded(self.info)
        return known is None or known.issuperset(kinds)

    def stands(self, broker: str, now: int) -> list[tuple[int, int]]:
        """From when until when the broker stood still, in µs, by pauses begun up to `now`: ascending, and apart."""
        known = bisect_right(self.broker_paused.get(broker, ()), (now, NEVER))
        apart: list[tuple[int, int]] = []
        for since, until in sorted(self.broker_stood.get(broker, ())[:known]):
            if apart and since <= apart[-1][1]:
                apart[-1] = (apart[-1][0], max(until, apart[-1][1]))
            else:
                apart.append((since, until))
        return apart

    def ran_us(self, broker: str, since_us: Ints, until_us: int, now: int) -> Ints:
        """How long the broker ran from each of these times on, by pauses begun up to `now`."""
        ran = until_us - since_us
        for since, until in self.stands(broker, now):
            ran -= np.maximum(np.minimum(until, until_us) - np.maximum(since, since_us), 0)
        return ran

    def broker_paused_since(self, broker: str, at_us: int, now: int) -> bool:
        """Was any of the broker's pauses, begun up to `now`, not over before `at_us`?"""
        return _paused_since(self.broker_paused.get(broker, ()), at_us, now)


def _is_of_a_broker(row: Row) -> bool:
    return bool(row.broker) and row.client_id in (None, row.broker)


def _until_us(row: Row) -> int:
    return NEVER if row.ended_us is None else row.ended_us


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


def _pause(pauses: list[tuple[int, int]], row: Row) -> None:
    """Add it: since its begin whoever pauses does so until the longest pause so far is over."""
    until_us = max(_until_us(row), pauses[-1][1] if pauses else 0)
    pauses.append((row.seq_begin, until_us))


def _paused_since(pauses: Sequence[tuple[int, int]], at_us: int, now: int) -> bool:
    for seq, until in reversed(pauses):
        if seq <= now:
            return until >= at_us
    return False


Runs = Mapping[str, RunContext]
"""By the run's name."""
