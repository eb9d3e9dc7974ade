"""What all judges may know of the run so far: who died, left or stood still, and what was removed on purpose."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from specs.clauses.keys import KeyValue
from specs.clauses.links import FOR_EVER_US, HoldUps, Sending, arrives_until, is_disturbed
from specs.clauses.rows import REQUEST_LEVELS
from specs.clauses.words import MS
from specs.faults import disk_full, duplicate, lingers_us
from specs.faults import pause as standstill
from specs.history.evidence import names_of
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.plan.config import Config
from specs.vocabulary import DLQ_PREFIX, Kind, Outcome, Queue

FLUSHED_LATER = "async"
"""The configuration's `flush` of brokers that answer a send before its message is safe from a crash."""

FRAMES_TWICE = duplicate.VERB
"""The first word of the detail of such a fault's row; the link follows, or nothing where it is every link."""

DISK_FULL = disk_full.VERB
"""How the detail of a fault's row begins that filled a broker's disk."""

EVERY_BROKER = "*"
"""Stands for whoever may be meant by a fault that names nobody."""

NEVER_SAFE_US = -(1 << 62)
"""A moment before all others: what was acknowledged after it may be gone."""


@dataclass(slots=True)
class Context:
    """What all judges may know of the run so far: deaths, departures, pauses, clock steps, frames that come twice,
    which lanes each client has begun to work on, and what brokers removed on purpose.

    Kept by the engine, in the total order, before the judges see the same event.
    """

    info: RunInfo

    # Of a broker: its last crash and all of them, the latest epoch and since when, the deaths that a new epoch tells
    # and no crash, the latest pause and all of them, and, of each crash, what it may have lost.
    broker_died: dict[str, Row] = field(default_factory=dict)
    broker_deaths: dict[str, list[Row]] = field(default_factory=dict)
    epochs: dict[str, tuple[int, int]] = field(default_factory=dict)
    epoch_deaths: dict[str, list[Row]] = field(default_factory=dict)
    broker_paused: dict[str, Row] = field(default_factory=dict)
    broker_pauses: dict[str, list[Row]] = field(default_factory=dict)
    unflushed: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    # Brokers whose disk a fault filled, as its row's column says, or its detail; without a name, every broker's.
    crowded: set[str | None] = field(default_factory=set)

    # Of a client: its last crash (`last_death` is not undone by a new start), its LEAVE rows, its latest pause, and
    # every lane that it ever added.
    client_died: dict[str, Row] = field(default_factory=dict)
    last_death: dict[str, Row] = field(default_factory=dict)
    left: dict[str, list[Row]] = field(default_factory=dict)
    paused: dict[str, Row] = field(default_factory=dict)
    lanes: dict[str, set[KeyValue]] = field(default_factory=dict)
    brokers: dict[str, set[str | None]] = field(default_factory=dict)
    # By client, and group where the row names it: who is leaving, the leaving whose successor is there, and the last
    # one that was over before its successor came.
    leaving: dict[tuple[str, str | None], Row] = field(default_factory=dict)
    old_lives: dict[tuple[str, str | None], int] = field(default_factory=dict)
    shut_down: dict[tuple[str, str | None], Row] = field(default_factory=dict)
    # By group and client: the start of who lives.
    members: dict[str, dict[str, Row]] = field(default_factory=dict)
    # Groups of which a start told that they do not subscribe to every message; None: whatever its groups are.
    filters: set[str | None] = field(default_factory=set)
    # By group and topic.
    first_adds: dict[tuple[str | None, str | None], Row] = field(default_factory=dict)

    # Lanes whose offset an operator moved; the offset below which a broker has removed everything, and the removals
    # from a topic.
    resets: set[KeyValue] = field(default_factory=set)
    kept_from: dict[Queue, int] = field(default_factory=dict)
    trims: dict[str, list[Row]] = field(default_factory=dict)

    # What the harness injected, the first fault of a link that made two frames of one, what stood in the way of
    # requests, and until when something disturbed the group life: starts, ends, pauses, faults, clock steps. Whoever
    # waits by a wall clock that is set back waits longer by as much; by how much all of them were.
    faults: list[Row] = field(default_factory=list)
    frames_twice: Row | None = None
    hold_ups: HoldUps = field(default_factory=HoldUps)
    disturbed_us: int = -1
    set_back_us: int = 0
    clock_stepped: Row | None = None

    # Of a producer: the seq at which, for the first time, a send of its ended and nobody knows how.
    unsure: dict[str, int] = field(default_factory=dict)

    # By run: where the last reading of a queue and a topic's last call stand in the order.
    drained: dict[tuple[str, Queue], int] = field(default_factory=dict)
    delivered: dict[tuple[str, str | None], int] = field(default_factory=dict)
    # By run: the resets that took time, or were never answered.
    slow_resets: dict[str, list[Row]] = field(default_factory=dict)
    # By run: the first dead letter that was read and names the id of its origin. Whoever reads looks at that column.
    named_origin: dict[str, Row] = field(default_factory=dict)

    @property
    def config(self) -> Config:
        return self.info.config

    def begins(self, row: Row) -> None:
        if row.kind in (Kind.PAUSE, Kind.FAULT):
            self.hold_ups.take(row)
        if row.kind in DISTURBS:
            ended_us = FOR_EVER_US if row.ended_us is None else row.ended_us
            if row.kind is Kind.CLOCK_STEP:
                self.set_back_us += max(0, -(row.value or 0)) * MS
                ended_us += self.set_back_us
            self.disturbed_us = max(self.disturbed_us, ended_us + lingers_us(row))
        if row.kind is Kind.FAULT:
            self.faults.append(row)
        match row.kind:
            case Kind.CRASH if row.broker and row.client_id in (None, row.broker):
                self.broker_died[row.broker] = row
                self.broker_deaths.setdefault(row.broker, []).append(row)
                if self.config.flush == FLUSHED_LATER:
                    self.unflushed.setdefault(row.broker, []).append(
                        (row.seq_begin, self._flushed_us(row))
                    )
            case Kind.CRASH if row.client_id:
                self.client_died[row.client_id] = self.last_death[row.client_id] = row
                self._gone(row.client_id)
            case Kind.LEAVE if row.client_id:
                self.leaving[(row.client_id, row.group)] = row
                self.left.setdefault(row.client_id, []).append(row)
                self._gone(row.client_id, row.group)
            case Kind.JOIN if row.client_id:
                self._works(row)
                self.client_died.pop(row.client_id, None)
                if not takes_everything(row.view):
                    self.filters.add(row.group)
                if row.group:
                    self.members.setdefault(row.group, {})[row.client_id] = row
            case Kind.PAUSE if row.broker and row.client_id in (None, row.broker):
                self.broker_paused[row.broker] = row
                self.broker_pauses.setdefault(row.broker, []).append(row)
            case Kind.PAUSE if row.client_id:
                self.paused[row.client_id] = row
            case Kind.CLOCK_STEP if self.clock_stepped is None:
                self.clock_stepped = row
            case Kind.FAULT if (
                self.frames_twice is None and (row.detail or "").partition(" ")[0] == FRAMES_TWICE
            ):
                self.frames_twice = row
            case Kind.FAULT if (row.detail or "").startswith(DISK_FULL):
                self.crowded |= {row.broker, *names_of(row)} - {None} or {EVERY_BROKER}
            case Kind.ADD if row.client_id:
                self._works(row)
                self.lanes.setdefault(row.client_id, set()).add(row.lane)
                self.brokers.setdefault(row.client_id, set()).add(row.broker)
                self.first_adds.setdefault((row.group, row.topic), row)
            case Kind.RESET:
                self.resets.add(row.lane)
                if row.seq_end != row.seq_begin and row.level in REQUEST_LEVELS:
                    self.slow_resets.setdefault(row.run, []).append(row)
            case Kind.TRIM if row.value is not None:
                self.kept_from[row.queue] = max(row.value, self.kept_from.get(row.queue, 0))
                self.trims.setdefault(row.topic or "", []).append(row)
            case _:
                pass

    def not_told(self, row: Row) -> None:
        """A send of which its producer was not told what came of it."""
        if row.seq_end is not None and row.client_id is not None:
            known = self.unsure.get(row.client_id, row.seq_end)
            self.unsure[row.client_id] = min(known, row.seq_end)

    def was_sure(self, sent: Row) -> bool:
        """Had its producer been told of each of its sends what came of it, when this one ended?"""
        unsure = self.unsure.get(sent.client_id or "")
        return sent.seq_end is not None and (unsure is None or sent.seq_end < unsure)

    def looked(self, row: Row) -> None:
        """Somebody looks at what lies in a topic: a listener call, or the reading of a queue to its end."""
        if row.kind is Kind.DELIVER:
            self.delivered[(row.run, row.topic)] = row.seq_begin
            return
        if row.origin_id is not None and (row.topic or "").startswith(DLQ_PREFIX):
            self.named_origin.setdefault(row.run, row)
        if row.queue_offset is None and row.message_id is None and row.outcome is Outcome.OK:
            self.drained[(row.run, row.queue)] = row.seq_begin

    def fault_between(
        self, since_us: int, until_us: int, client_id: str | None, broker: str | None
    ) -> bool:
        """Did a fault that has begun by now last at any time between these two, both included?

        That another client, or another broker, was paused is none between these two.
        """
        return any(
            fault.started_us <= until_us and (fault.ended_us is None or fault.ended_us >= since_us)
            for fault in self.faults
            if not is_pause_of_another(fault, client_id, broker)
        )

    def removed_of(self, topic: str, broker: str | None) -> bool:
        """Did the broker remove anything of the topic on purpose?"""
        return any(trim.broker == broker for trim in self.trims.get(topic, ()))

    def is_crowded(self, broker: str | None) -> bool:
        """Has a fault filled the broker's disk, so that it lets the oldest messages go, whatever their age?"""
        return not self.crowded.isdisjoint((broker or "", EVERY_BROKER))

    def removed_early(self, sent: Row, offset: int) -> bool:
        """Did the broker remove it on purpose, and for certain before it was as old as it has to be kept?

        Only where the configuration says how long that is. A full disk, or a wall clock that was set, makes it
        unknown how old a message may become.
        """
        if (
            not self.config.keep_ms
            or self.clock_stepped is not None
            or self.is_crowded(sent.broker)
        ):
            return False
        trims = (trim for trim in self.trims.get(sent.topic or "", ()) if trim.queue == sent.queue)
        removal = next((trim for trim in trims if offset < (trim.value or 0)), None)
        if removal is None:
            return False
        return (
            removal.started_us - sent.started_us + self.info.clock_bound_us
            < self.config.keep_ms * MS
        )

    def was_removed(self, row: Row, offset: int, before: Row | None = None) -> bool:
        """Has the broker said (by now, or before that row) that it keeps the offset of the row's queue no longer?"""
        if before is None or offset >= self.kept_from.get(row.queue, 0):
            return offset < self.kept_from.get(row.queue, 0)
        told = (trim for trim in self.trims.get(row.topic or "", ()) if trim.queue == row.queue)
        return any(
            trim.seq_begin <= before.seq_begin and offset < (trim.value or 0) for trim in told
        )

    def queues_of(self, topic: str) -> set[Queue]:
        """The queues of the topic that somebody has added as lanes, or of which a broker has removed something."""
        added = {lane for lanes in self.lanes.values() for lane in lanes}
        named = {Queue(*lane[1:]) for lane in added if lane[1] == topic}
        return named.union(trim.queue for trim in self.trims.get(topic, ()))

    def has_threads(self, client_id: str | None) -> bool:
        """Has a client at least twice as many threads as it ever had lanes? So many that none waits for one."""
        return 2 * len(self.lanes.get(client_id or "", ())) <= self.config.threads

    def brokers_of(self, client_id: str | None) -> int:
        """Of how many brokers a client has ever added lanes: as many requests may be one round of its renewals."""
        return len(self.brokers.get(client_id or "", ()))

    def epoch(self, row: Row) -> None:
        """A row that names the epoch of its broker: a new one is a death of the broker, somewhere before.

        Unless a crash row has told of it already.
        """
        broker, epoch = row.broker or "", row.broker_epoch or 0
        known, since = self.epochs.get(broker, (epoch, row.seq_begin))
        if broker not in self.epochs or epoch > known:
            self.epochs[broker] = (epoch, row.seq_begin)
        if epoch > known:
            crash = self.broker_died.get(broker)
            if crash is None or crash.seq_begin <= since:
                self.broker_died[broker] = row
                self.epoch_deaths.setdefault(broker, []).append(row)
                if (
                    self.config.flush == FLUSHED_LATER
                ):  # nobody says when, so nothing before was safe
                    self.unflushed.setdefault(broker, []).append((row.seq_begin, NEVER_SAFE_US))

    def is_leaving(self, client_id: str | None, group: str | None) -> Row | None:
        """The LEAVE of a client that has begun to shut down its work in the group, and has not begun anew."""
        client = client_id or ""
        return self.leaving.get((client, group)) or self.leaving.get((client, None))

    def _works(self, row: Row) -> None:
        """The client works in the row's group: whoever of its name was leaving that is gone."""
        client = row.client_id or ""
        self._came_again((client, None), row)
        if row.group is not None:
            self._came_again((client, row.group), row)
        elif row.kind is Kind.JOIN:  # of a process, whatever its groups
            for key in [key for key in self.leaving if key[0] == client]:
                self._came_again(key, row)

    def _came_again(self, key: tuple[str, str | None], row: Row) -> None:
        leave = self.leaving.pop(key, None)
        if leave is not None:
            self.old_lives[key] = leave.seq_begin if leave.seq_end is None else leave.seq_end
            if leave.seq_end is not None and leave.seq_end < row.seq_begin:
                self.shut_down[key] = leave

    def is_of_an_old_life(self, client_id: str | None, group: str | None, row: Row) -> bool:
        """Did the process that did `row` die, or leave the group and begin anew there, since?

        The next process of its name knows nothing of what it did, and is not held to it.
        """
        client = client_id or ""
        left = max(self.old_lives.get((client, group), -1), self.old_lives.get((client, None), -1))
        return row.seq_begin <= left or self.client_died_since(client_id, row)

    def is_of_the_process_before(self, row: Row, now: Row) -> bool:
        """Is what did `row` certainly gone, and what does `now`, of the same client and group, the next of its name?

        Its last death, or a shutdown that was over before the client came again, is of the process that `row` names,
        and `now` names it too. Two processes of one client id go on without each other.
        """
        client = row.client_id or ""
        ends = [self.shut_down.get((client, now.group)), self.shut_down.get((client, None))]
        if self.client_died_since(client, row):
            ends.append(self.last_death.get(client))
        return any(
            end is not None
            and row.seq_begin <= (end.seq_end or end.seq_begin)
            and end.process == row.process == now.process
            for end in ends
        )

    def _gone(self, client_id: str, group: str | None = None) -> None:
        for name, members in self.members.items():
            if group is None or name == group:
                members.pop(client_id, None)

    def is_filtered(self, group: str) -> bool:
        """Has a member of the group told, as it started, that it does not subscribe to every message?"""
        return group in self.filters or None in self.filters

    def newest_member(self, group: str | None) -> Row | None:
        """The JOIN of the living member of the group that started last."""
        members = self.members.get(group or "", {})
        return max(members.values(), key=lambda row: row.seq_begin, default=None)

    def broker_died_since(self, broker: str | None, row: Row) -> bool:
        """Did the broker die after the begin of `row`: by a crash row, or by an epoch later than the row's?"""
        epoch = row.broker_epoch if row.broker == broker else None
        if epoch is not None and self.epochs.get(broker or "", (epoch, 0))[0] > epoch:
            return True
        death = self.broker_died.get(broker or "")
        if death is None or death.seq_begin <= row.seq_begin:
            return False
        return death.kind is Kind.CRASH or epoch is None

    def may_be_unflushed(self, row: Row) -> bool:
        """Did the broker crash so soon after it answered, that its disk may not have the message yet?

        Only where the configuration says that sends are answered before they are flushed. The answer itself may
        arrive after the crash.
        """
        crashes = self.unflushed.get(row.broker or "", ())
        return row.ended_us is not None and any(
            row.seq_begin < crash and row.ended_us > flushed_us for crash, flushed_us in crashes
        )

    def _flushed_us(self, crash: Row) -> int:
        """Up to when a broker that crashes has flushed everything: an interval, a timer's slack and a sync before.

        While the broker stood still, none of them passed.
        """
        config = self.config
        left_us = (config.flush_ms + config.schedule_slack_ms + config.disk_slack_ms) * MS
        at_us = crash.started_us
        for pause in reversed(self.broker_pauses.get(crash.broker or "", ())):
            ended_us = at_us if pause.ended_us is None else min(at_us, pause.ended_us)
            if at_us - ended_us >= left_us:
                break
            left_us -= at_us - ended_us
            at_us = min(at_us, pause.started_us)
        return at_us - left_us

    def client_died_since(self, client_id: str | None, row: Row) -> bool:
        """Did the client crash after the begin of `row`, whether or not it started again?"""
        death = self.last_death.get(client_id or "")
        return death is not None and death.seq_begin > row.seq_begin

    def may_arrive_until(self, row: Row, until_us: int) -> int:
        """The last moment at which the request `row` may have arrived, in µs.

        until_us: if nothing stood in its way.
        """
        bound_us, clocks_us = self.config.delay_bound_ms * MS, self.info.clock_bound_us
        hold_ups = self.hold_ups.since(row.started_us - clocks_us, FOR_EVER_US)
        return (
            arrives_until(_sending(row), until_us, hold_ups, bound_us, clocks_us)
            if hold_ups
            else until_us
        )

    def is_disturbed(self, row: Row, until_us: int) -> bool:
        """Did anything stand in the way of the request `row`, or of its answer, until then?"""
        bound_us, clocks_us = self.config.delay_bound_ms * MS, self.info.clock_bound_us
        hold_ups = self.hold_ups.since(row.started_us - bound_us - clocks_us, FOR_EVER_US)
        return is_disturbed(_sending(row), until_us, hold_ups, bound_us, clocks_us)

    def forget(self) -> None:
        """Another run begins."""
        for known in (self.broker_died, self.client_died, self.paused, self.last_death):
            known.clear()
        self.leaving.clear()
        self.epochs.clear()
        self.broker_paused.clear()
        self.broker_deaths.clear()
        self.broker_pauses.clear()
        self.epoch_deaths.clear()
        self.unflushed.clear()
        self.lanes.clear()
        self.brokers.clear()
        self.resets.clear()
        self.kept_from.clear()
        self.trims.clear()
        self.hold_ups.clear()
        self.first_adds.clear()
        self.disturbed_us, self.set_back_us = -1, 0
        self.old_lives.clear()
        self.shut_down.clear()
        self.left.clear()
        self.faults.clear()
        self.crowded.clear()
        self.unsure.clear()
        self.members.clear()
        self.filters.clear()
        self.clock_stepped = self.frames_twice = None

    def paused_since(self, client_id: str | None, at_us: int) -> bool:
        """Was the client paused at any time from `at_us` on?"""
        pause = self.paused.get(client_id or "")
        return pause is not None and (pause.ended_us is None or pause.ended_us >= at_us)

    def broker_paused_since(self, broker: str | None, at_us: int) -> bool:
        """Was the broker paused at any time from `at_us` on?"""
        pause = self.broker_paused.get(broker or "")
        return pause is not None and (pause.ended_us is None or pause.ended_us >= at_us)

    def stood_us(self, broker: str | None, since_us: int, until_us: int) -> int:
        """For how long, between these two, did the broker stand still, in pauses that have begun by now?"""
        stood_us, at_us = 0, since_us
        pauses = self.broker_pauses.get(broker or "", ())
        for pause in sorted(pauses, key=lambda row: row.started_us):
            over_us = until_us if pause.ended_us is None else min(pause.ended_us, until_us)
            stood_us += max(0, over_us - max(at_us, pause.started_us))
            at_us = max(at_us, over_us)
        return stood_us


def _sending(row: Row) -> Sending:
    return Sending(row.client_id or "", row.broker or "", row.kind, row.started_us)


def takes_everything(subscription: str | None) -> bool:
    """Is a subscription, as a JOIN's `view` tells it, one to every message: `*`, or `orders:*` of each topic?

    What is not told is as the configuration says.
    """
    words = re.split(r"[\s,;]+", subscription or "")
    return all(word.rpartition(":")[2] in ("*", "") for word in words)


DISTURBS = frozenset({Kind.CRASH, Kind.LEAVE, Kind.JOIN, Kind.PAUSE, Kind.CLOCK_STEP, Kind.FAULT})
"""What can hold up whoever should take a lane."""
LOOKS = frozenset({Kind.DELIVER, Kind.READ})
"""Kinds of rows by which somebody looks at what lies in a topic."""
CONTEXT_KINDS = frozenset(
    {
        Kind.CRASH,
        Kind.LEAVE,
        Kind.JOIN,
        Kind.PAUSE,
        Kind.CLOCK_STEP,
        Kind.FAULT,
        Kind.ADD,
        Kind.RESET,
        Kind.TRIM,
    }
)


def is_pause_of_another(fault: Row, client_id: str | None, broker: str | None) -> bool:
    """Does the fault say that somebody else than these two stood still? Its columns say who, or its detail.

    Of somebody who is not named nobody knows that.
    """
    word, _, names = (fault.detail or "").partition(" ")
    paused = {fault.client_id, fault.broker, *names.split()}
    if word != standstill.VERB or not client_id or not broker or {client_id, broker} & paused:
        return False
    return fault.client_id is not None or fault.broker is not None
