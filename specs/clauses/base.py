"""What every clause is made of: findings, premises, the judge of one key, and what judges may know of the run.

A judge sees the begins and the ends of operations in their total order (`begins(row)`, `ends(row)`); the row it
gets is whole in both, so at a begin it must not use how the operation ends unless the clause is about that. It
holds constant memory per key. It concludes from rows that are present, rooted in a row that shows that the
incarnation (or the grant) was watched from its start; so a slice of a history is judged like a history.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any, ClassVar

from specs.clauses.certainty import THAT_LAST, recorded
from specs.clauses.links import FOR_EVER_US, HoldUps, Sending, arrives_until, is_disturbed
from specs.clauses.transcript import Example, Expected
from specs.faults import disk_full, duplicate
from specs.faults import pause as standstill
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.plan.config import Config
from specs.plan.traits import Stake
from specs.vocabulary import (
    DLQ_PREFIX,
    LISTENER_SUSPENDS,
    RETRY_PREFIX,
    CommitMode,
    Key,
    Kind,
    Level,
    Outcome,
    Party,
    Queue,
)

MS = 1000
"""Microseconds in a millisecond."""

NOTHING: tuple[()] = ()
"""What a judge mostly finds."""

FLUSHED_LATER = "async"
"""The configuration's `flush` of brokers that answer a send before its message is safe from a crash."""

FRAMES_TWICE = duplicate.VERB
"""The first word of the detail of such a fault's row; the link follows, or nothing where it is every link."""

DISK_FULL = disk_full.VERB
"""How the detail of a fault's row begins that filled a broker's disk."""

NEVER_SAFE_US = -(1 << 62)
"""A moment before all others: what was acknowledged after it may be gone."""

REQUEST_LEVELS = frozenset({Level.CLIENT, Level.WIRE, Level.TAP})
"""Requests as their sender saw them, or as they passed a tap. Broker-side (`store`) rows repeat them and are left out
unless asked for. A request is recorded at one of these levels: who taps a client that tells its sends, skips them."""


@dataclass(frozen=True, slots=True)
class Premise:
    """A condition under which a clause is claimed. Checked, not assumed: `text` says how.

    holds: for a condition that a run meets or not from its begin to its end. Where it does not hold the clause is
    not judged, and not claimed. None: the judge, or the context, watches for it event by event. told_by: the kinds of
    rows that tell that it failed.
    """

    name: str
    text: str
    holds: Callable[[RunInfo], bool] | None = field(default=None, repr=False, compare=False)
    told_by: frozenset[Kind] = field(default=frozenset(), repr=False, compare=False)


NO_WALL_CLOCK_STEP = Premise(
    "no wall-clock step",
    "no wall clock of a party was stepped; after a recorded step lease clauses stop judging",
    told_by=frozenset({Kind.CLOCK_STEP}),
)
CLOSED_WORLD = Premise(
    "closed world",
    "the history holds every producer and consumer (run.json says so)",
    lambda info: info.closed_world,
)
BATCH_OF_ONE = Premise(
    "batch of one",
    "the consumer takes one message per listener call (configuration)",
    lambda info: info.config.batch == 1,
)
BROKER_LIVES = Premise(
    "the broker lives",
    "no crash of the broker between the grant and the event: neither a crash row nor a new epoch of it",
    told_by=frozenset({Kind.CRASH}),
)
NO_RESET = Premise(
    "no reset",
    "no operator moved the offset; a reset row clears what is remembered, unless it was refused",
    told_by=frozenset({Kind.RESET}),
)
NO_ROLLBACK = Premise("no rollback", "no ROLLBACK by this incarnation: it replays without counting")
NO_FRAME_TWICE = Premise(
    "no frame twice",
    "nothing on the way made two frames of one; a recorded fault `duplicate` silences the clause",
    told_by=frozenset({Kind.FAULT}),
)
DEAD_LETTER_SENT = Premise(
    "dead letter sent", "no send to the dead letters failed or stayed unanswered"
)
ORDERLY = Premise(
    "orderly",
    "the group consumes in orderly mode and clustering; other modes take no lease (configuration)",
    lambda info: info.config.mode == "orderly" and info.config.message_model == "clustering",
)
CONCURRENT = Premise(
    "concurrent",
    "the group consumes in concurrent mode and clustering (configuration)",
    lambda info: info.config.mode == "concurrent" and info.config.message_model == "clustering",
)
KEY_ORDERED = Premise(
    "key-ordered",
    "the group consumes concurrently, one worker per sharding key, in clustering (configuration)",
    lambda info: info.config.mode == "key_ordered" and info.config.message_model == "clustering",
)
OUT_OF_ORDER = Premise(
    "concurrent or key-ordered",
    "the group consumes concurrently, whether or not by key, in clustering (configuration)",
    lambda info: (
        info.config.mode in ("concurrent", "key_ordered")
        and info.config.message_model == "clustering"
    ),
)
IN_PLACE = Premise(
    "orderly or key-ordered",
    "the group consumes in order, of each lane or of each key, and retries in place, in clustering (configuration)",
    lambda info: (
        info.config.mode in ("orderly", "key_ordered") and info.config.message_model == "clustering"
    ),
)
BROADCASTING = Premise(
    "broadcasting",
    "every member of the group consumes every queue (configuration)",
    lambda info: info.config.message_model == "broadcasting",
)
CLUSTERING = Premise(
    "clustering",
    "the members of a group share its queues (configuration)",
    lambda info: info.config.message_model == "clustering",
)
DEALT = Premise(
    "dealt",
    "the members share by a strategy that deals the queues out, not by a fixed list (configuration)",
    lambda info: info.config.strategy != "CONFIG",
)
DEALT_TO_THE_LAST = Premise(
    "dealt to the last",
    "the members share by a strategy that deals all queues out: neither a fixed list nor that of listed machine rooms "
    "(configuration)",
    lambda info: info.config.strategy not in ("CONFIG", "MACHINE_ROOM"),
)
NOT_PAUSED = Premise(
    "not paused",
    "the client was not stopped in between; a recorded pause silences the clause",
    told_by=frozenset({Kind.PAUSE}),
)
BROKER_NOT_PAUSED = Premise(
    "broker not paused",
    "the broker was not stopped in between; a recorded pause silences the clause",
    told_by=frozenset({Kind.PAUSE}),
)
NO_FILTER = Premise(
    "no filter",
    "the group subscribes to every message of the topic: `*` (configuration)",
    lambda info: info.config.subscription == "*",
)
FILTERED = Premise(
    "filtered",
    "the group subscribes to some tags only (configuration)",
    lambda info: info.config.subscription != "*",
)
AUTO_MODE = Premise(
    "auto mode", "the listener left the commit to the client: a manual ROLLBACK replays"
)
SENT_IN_TURN = Premise(
    "sent in turn",
    "the producer numbers a key's messages and sends the next one after the last was acknowledged",
)
SAME_QUEUES = Premise(
    "same queues", "the sends chose by the same selector from the same queues, as their `view` says"
)
SETTLED = Premise(
    "settled",
    "the harness heals all faults and waits until nothing happens before it drains (run.json says so); a reading that "
    "was not so prepared is passed over",
    lambda info: info.settles,
)
NOT_REMOVED = Premise(
    "not removed",
    "the broker did not say that it keeps the message no longer; below an announced minimum nothing is claimed",
    told_by=frozenset({Kind.TRIM}),
)
NOTHING_TAKEN_BACK = Premise(
    "nothing taken back",
    "no broker answers before it flushes (configuration, `flush` async): its crash would take back what consumers have "
    "seen, and give the offsets to other messages, which they then pass by",
    lambda info: info.config.flush != FLUSHED_LATER,
)
DRAINED = Premise("drained", "the queue was read to its end after everything else")


@dataclass(frozen=True, slots=True)
class Finding:
    """A violation: a subclass names its rows, and other facts, as fields.

    Its public name, by which a profile may allow it, is that of the subclass. certain: False when something that the
    history can't tell leaves it open; what holds for all clauses (`specs.clauses.certainty`) is not the judge's to ask.
    """

    certain: bool = field(default=True, kw_only=True)

    @property
    def name(self) -> str:
        """Its public name."""
        return name_of(type(self))

    @property
    def rows(self) -> tuple[Row, ...]:
        """The evidence, by seq_begin, each row once."""
        found: dict[int, Row] = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, Row):
                found[value.seq_begin] = value
            elif (
                isinstance(value, tuple) and value and all(isinstance(item, Row) for item in value)
            ):
                found.update((item.seq_begin, item) for item in value)
        return tuple(found[seq] for seq in sorted(found))

    @property
    def place(self) -> tuple[Any, ...]:
        """Findings are ordered by their last evidence, then by all of it: the first is the witness."""
        rows = self.rows
        return (
            (rows[-1].run, rows[-1].seq_begin, tuple(row.seq_begin for row in rows))
            if rows
            else ("", -1, ())
        )


def name_of(finding: type[Finding]) -> str:
    """The public name of a kind of finding: `two-owners` of TwoOwners."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", finding.__name__.lstrip("_")).lower()


@dataclass(slots=True)
class Context:
    """What all judges may know of the run so far: deaths, departures, pauses, clock steps, frames that come twice,
    which lanes each client has begun to work on, and what brokers removed on purpose.

    Kept by the engine, in the total order, before the judges see the same event.
    """

    info: RunInfo
    broker_died: dict[str, Row] = field(default_factory=dict)
    client_died: dict[str, Row] = field(default_factory=dict)
    leaving: dict[tuple[str, str | None], Row] = field(
        default_factory=dict
    )  # by client, and group where it is named
    epochs: dict[str, tuple[int, int]] = field(
        default_factory=dict
    )  # of a broker: the latest epoch, and since when
    paused: dict[str, Row] = field(
        default_factory=dict
    )  # the latest pause of a client, by its begin
    broker_paused: dict[str, Row] = field(default_factory=dict)  # the latest pause of a broker
    broker_deaths: dict[str, list[Row]] = field(default_factory=dict)  # every crash of a broker
    broker_pauses: dict[str, list[Row]] = field(default_factory=dict)  # every pause of a broker
    epoch_deaths: dict[str, list[Row]] = field(
        default_factory=dict
    )  # deaths that a new epoch tells, and no crash
    unflushed: dict[str, list[tuple[int, int]]] = field(
        default_factory=dict
    )  # each crash: what it may have lost
    members: dict[str, dict[str, Row]] = field(
        default_factory=dict
    )  # by group and client: the start of who lives
    clock_stepped: Row | None = None
    last_death: dict[str, Row] = field(
        default_factory=dict
    )  # of a client; a new start does not undo it
    frames_twice: Row | None = None  # the first fault of a link that made two frames of one
    lanes: dict[str, set[KeyValue]] = field(
        default_factory=dict
    )  # of a client: every lane that it ever added
    resets: set[KeyValue] = field(default_factory=set)  # lanes whose offset an operator moved
    kept_from: dict[Queue, int] = field(
        default_factory=dict
    )  # the offset below which a broker has removed everything
    trims: dict[str, list[Row]] = field(default_factory=dict)  # the removals from a topic
    first_adds: dict[tuple[str | None, str | None], Row] = field(
        default_factory=dict
    )  # by group and topic
    disturbed_us: int = (
        -1
    )  # until when something disturbed the group life: starts, ends, pauses, faults, clock steps
    hold_ups: HoldUps = field(default_factory=HoldUps)  # what stood in the way of requests
    old_lives: dict[tuple[str, str | None], int] = field(
        default_factory=dict
    )  # as `leaving`: whose successor is there
    left: dict[str, list[Row]] = field(default_factory=dict)  # every LEAVE of a client
    faults: list[Row] = field(default_factory=list)  # that the harness injected
    crowded: set[str] = field(default_factory=set)  # brokers whose disk a fault filled
    drained: dict[tuple[str, Queue], int] = field(
        default_factory=dict
    )  # by run: seq of the last reading of a queue
    delivered: dict[tuple[str, str | None], int] = field(
        default_factory=dict
    )  # by run: that of a topic's last call

    @property
    def config(self) -> Config:
        return self.info.config

    def begins(self, row: Row) -> None:
        if row.kind in (Kind.PAUSE, Kind.FAULT):
            self.hold_ups.take(row)
        if row.kind in DISTURBS:
            ended_us = FOR_EVER_US if row.ended_us is None else row.ended_us
            self.disturbed_us = max(self.disturbed_us, ended_us)
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
            case Kind.FAULT if row.broker and (row.detail or "").startswith(DISK_FULL):
                self.crowded.add(row.broker)
            case Kind.ADD if row.client_id:
                self._works(row)
                self.lanes.setdefault(row.client_id, set()).add(row.lane)
                self.first_adds.setdefault((row.group, row.topic), row)
            case Kind.RESET:
                self.resets.add(row.lane)
            case Kind.TRIM if row.value is not None:
                self.kept_from[row.queue] = max(row.value, self.kept_from.get(row.queue, 0))
                self.trims.setdefault(row.topic or "", []).append(row)
            case _:
                pass

    def looked(self, row: Row) -> None:
        """Somebody looks at what lies in a topic: a listener call, or the reading of a queue to its end."""
        if row.kind is Kind.DELIVER:
            self.delivered[(row.run, row.topic)] = row.seq_begin
        elif row.queue_offset is None and row.message_id is None and row.outcome is Outcome.OK:
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

    def removed_early(self, sent: Row, offset: int) -> bool:
        """Did the broker remove it on purpose, and for certain before it was as old as it has to be kept?

        Only where the configuration says how long that is. A full disk, or a wall clock that was set, makes it
        unknown how old a message may become.
        """
        if (
            not self.config.keep_ms
            or self.clock_stepped is not None
            or (sent.broker or "") in self.crowded
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

    def has_threads(self, client_id: str | None) -> bool:
        """Has a client at least twice as many threads as it ever had lanes? So many that none waits for one."""
        return 2 * len(self.lanes.get(client_id or "", ())) <= self.config.threads

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
        self._came_again((client, None))
        if row.group is not None:
            self._came_again((client, row.group))
        elif row.kind is Kind.JOIN:  # of a process, whatever its groups
            for key in [key for key in self.leaving if key[0] == client]:
                self._came_again(key)

    def _came_again(self, key: tuple[str, str | None]) -> None:
        leave = self.leaving.pop(key, None)
        if leave is not None:
            self.old_lives[key] = leave.seq_begin if leave.seq_end is None else leave.seq_end

    def is_of_an_old_life(self, client_id: str | None, group: str | None, row: Row) -> bool:
        """Did the process that did `row` die, or leave the group and begin anew there, since?

        The next process of its name knows nothing of what it did, and is not held to it.
        """
        client = client_id or ""
        left = max(self.old_lives.get((client, group), -1), self.old_lives.get((client, None), -1))
        return row.seq_begin <= left or self.client_died_since(client_id, row)

    def _gone(self, client_id: str, group: str | None = None) -> None:
        for name, members in self.members.items():
            if group is None or name == group:
                members.pop(client_id, None)

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
        """Up to when a broker that crashes has flushed everything: an interval and the slack of a timer before.

        While the broker stood still, neither passed.
        """
        left_us = (self.config.flush_ms + self.config.schedule_slack_ms) * MS
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
        self.resets.clear()
        self.kept_from.clear()
        self.trims.clear()
        self.hold_ups.clear()
        self.first_adds.clear()
        self.disturbed_us = -1
        self.old_lives.clear()
        self.left.clear()
        self.faults.clear()
        self.crowded.clear()
        self.members.clear()
        self.clock_stepped = self.frames_twice = None

    def paused_since(self, client_id: str | None, at_us: int) -> bool:
        """Was the client paused at any time from `at_us` on?"""
        pause = self.paused.get(client_id or "")
        return pause is not None and (pause.ended_us is None or pause.ended_us >= at_us)

    def broker_paused_since(self, broker: str | None, at_us: int) -> bool:
        """Was the broker paused at any time from `at_us` on?"""
        pause = self.broker_paused.get(broker or "")
        return pause is not None and (pause.ended_us is None or pause.ended_us >= at_us)


def _sending(row: Row) -> Sending:
    return Sending(row.client_id or "", row.broker or "", row.kind, row.started_us)


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
    """Does the fault say that somebody else than these two stood still? Its columns say who, or its detail."""
    word, _, names = (fault.detail or "").partition(" ")
    if word != standstill.VERB or {client_id, broker} & {
        fault.client_id,
        fault.broker,
        *names.split(),
    }:
        return False
    return fault.client_id is not None or fault.broker is not None


class Judge:
    """The judge of one clause for one key. Counts in `opportunities` how often the clause was at stake."""

    __slots__ = ("config", "context", "opportunities")

    def __init__(self, context: Context) -> None:
        self.context = context
        self.config = context.info.config
        self.opportunities = 0

    def begins(self, row: Row) -> Iterable[Finding]:
        """An operation begins."""
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        """An operation ends."""
        return NOTHING

    def finish(self) -> Iterable[Finding]:
        """The history is over."""
        return NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What every clause has, whatever judges it.

    rules: the wire rules that decide it. vectors: the file of the table that does, in `specs/vectors/`. A clause
    with a judge may name both: what a history can't show, an exchange or a table does. stakes: what a run needs so
    that a clause is at stake, as far as a plan may lack it; the run has to have each of them.
    """

    id: str
    name: str
    title: str
    statement: str
    party: Party
    premise: tuple[Premise, ...]
    sources: tuple[str, ...]
    refines: tuple[str, ...]
    doc: str
    rules: tuple[str, ...] = ()
    vectors: str | None = None
    stakes: tuple[Stake, ...] = ()

    BY_HISTORY: ClassVar[bool] = False

    @property
    def family(self) -> str:
        return self.id.split("-")[0]

    @property
    def judged_by(self) -> tuple[str, ...]:
        """What decides it: a `history`, a table of `vectors`, an exchange on the `wire`; more than one may."""
        ways = (
            ("history", self.BY_HISTORY),
            ("vectors", bool(self.vectors)),
            ("wire", bool(self.rules)),
        )
        return tuple(way for way, does in ways if does)

    def unmet(self, info: RunInfo) -> Premise | None:
        """The first premise that the run does not meet from its begin to its end; None when the clause applies."""
        for premise in self.premise:
            if premise.holds is not None and not premise.holds(info):
                return premise
        return None

    FAMILIES: ClassVar[Mapping[str, str]] = {
        "ORD": "order",
        "LSE": "lease",
        "RTY": "suspend and retry",
        "DLQ": "dead letters",
        "CMT": "commit",
        "SND": "send and store",
        "ASG": "assignment",
        "LIV": "progress",
        "MET": "the run itself",
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause(Promise):
    """A clause that a history decides, read from its module.

    kinds: the rows its judge wants. levels: at which they were seen. wants: which rows of these kinds; None for
    all of them. needs: the kinds without which nothing about it can be seen. absence: it concludes from what nobody
    else did. excused_by: kinds of rows that excuse and that only the context knows. named_by: kinds that only say which
    of its findings it is. looks_back: it concludes from what did not happen before. findings: the public names of what
    it finds.
    """

    key: Key
    kinds: frozenset[Kind]
    levels: frozenset[Level]
    judge: Callable[[Context], Judge] = field(repr=False)
    explain: Callable[[Any], str] = field(repr=False)
    examples: tuple[Example, ...] = field(repr=False)
    needs: frozenset[Kind]
    excused_by: frozenset[Kind]
    named_by: frozenset[Kind]
    absence: bool
    looks_back: bool
    findings: tuple[str, ...]
    needs_finish: bool = False
    wants: Callable[[Row], bool] | None = field(default=None, repr=False)

    BY_HISTORY: ClassVar[bool] = True

    @property
    def excuses(self) -> frozenset[Kind]:
        """The kinds of rows that could excuse what looks like a violation."""
        told = (premise.told_by for premise in self.premise)
        return self.kinds.difference(self.needs, self.named_by).union(self.excused_by, *told)

    def missing(self, known: frozenset[Kind]) -> frozenset[Kind]:
        """What it needs and does not have, of the kinds that are recorded."""
        return self.needs - known

    @property
    def asks_what_a_client_knew(self) -> bool:
        """Is it about what a client does, of a lane or queue: on the answers that it had?"""
        return self.party in (Party.CLIENT, Party.PAIR) and self.key in (Key.LANE, Key.QUEUE)

    def stands_in(self, info: RunInfo, *, epochs: bool, ended: bool) -> bool:
        """Is a finding certain, by the rules for all clauses but that of the clocks (`specs.clauses.certainty`)?

        epochs: every row of the evidence that names a broker names its epoch. ended: its calls ended, and (where the
        clause asks what a client knew) so did whatever else its clients had begun there before.
        """
        if not info.closed_world and (self.absence or not ended):
            return False
        if info.begins_late and (self.looks_back or self.excuses & THAT_LAST):
            return False
        known = recorded(info)
        if known is None:
            return True
        unseen = self.excuses - known
        return unseen <= {Kind.CRASH} if epochs else not unseen

    @property
    def shortest_violation(self) -> str:
        """The first broken example of its transcript."""
        return next(
            example.text for example in self.examples if example.expected is Expected.BROKEN
        )

    @property
    def lookalike(self) -> str:
        """The first kept example of its transcript: allowed, though it looks wrong."""
        return next(example.text for example in self.examples if example.expected is Expected.KEPT)


KeyValue = tuple[Any, ...]


def key_of(key: Key) -> Callable[[Row], KeyValue | None]:
    """The function that finds a row's key; None when the row has none (and no judge of that key sees it)."""
    return _KEYS[key]


def _lane(row: Row) -> KeyValue | None:
    if row.queue_id is None or row.group is None:
        return None
    return (row.run, row.group, row.topic, row.broker, row.queue_id)


def _queue(row: Row) -> KeyValue | None:
    return None if row.queue_id is None else (row.run, row.topic, row.broker, row.queue_id)


def _message(row: Row) -> KeyValue | None:
    source = row.origin_id or row.message_id
    return None if source is None else (row.run, source)


def _producer_key(row: Row) -> KeyValue | None:
    return (
        None if row.sharding_key is None else (row.run, row.client_id, row.topic, row.sharding_key)
    )


def _topic_key(row: Row) -> KeyValue | None:
    return None if row.sharding_key is None else (row.run, row.topic, row.sharding_key)


def _group_key(row: Row) -> KeyValue | None:
    if row.group is None or row.sharding_key is None:
        return None
    return (row.run, row.group, row.topic, row.sharding_key)


def _group(row: Row) -> KeyValue | None:
    return None if row.group is None else (row.run, row.group)


def _run(row: Row) -> KeyValue | None:
    return (row.run,)


_KEYS: dict[Key, Callable[[Row], KeyValue | None]] = {
    Key.LANE: _lane,
    Key.QUEUE: _queue,
    Key.MESSAGE: _message,
    Key.PRODUCER_KEY: _producer_key,
    Key.TOPIC_KEY: _topic_key,
    Key.GROUP_KEY: _group_key,
    Key.GROUP: _group,
    Key.RUN: _run,
}


class Intervals:
    """A set of whole numbers kept as disjoint half-open ranges; finished offsets are one or two of them."""

    __slots__ = ("_starts", "_stops")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._stops: list[int] = []

    def add(self, start: int, stop: int | None = None) -> None:
        """Add one number, or the range start..stop-1."""
        stop = start + 1 if stop is None else stop
        if stop <= start:
            return
        starts, stops = self._starts, self._stops
        if not stops or start > stops[-1]:
            starts.append(start)
            stops.append(stop)
            return
        if start >= starts[-1]:  # mostly the next number
            if stop > stops[-1]:
                stops[-1] = stop
            return
        low = bisect_left(stops, start)
        high = bisect_right(starts, stop)
        if low < high:
            start = min(start, starts[low])
            stop = max(stop, stops[high - 1])
        starts[low:high] = [start]
        stops[low:high] = [stop]

    def __contains__(self, number: int) -> bool:
        index = bisect_right(self._starts, number) - 1
        return index >= 0 and number < self._stops[index]

    def first_missing(self, start: int) -> int:
        """The smallest number at or after `start` that is not in the set."""
        index = bisect_right(self._starts, start) - 1
        if index >= 0 and start < self._stops[index]:
            return self._stops[index]
        return start

    def first_present(self, start: int) -> int | None:
        """The smallest number at or after `start` that is in the set."""
        index = bisect_right(self._starts, start) - 1
        if index >= 0 and start < self._stops[index]:
            return start
        return self._starts[index + 1] if index + 1 < len(self._starts) else None

    def __bool__(self) -> bool:
        return bool(self._starts)

    def clear(self) -> None:
        self._starts.clear()
        self._stops.clear()

    def ranges(self) -> Sequence[tuple[int, int]]:
        return list(zip(self._starts, self._stops, strict=True))


def changed_nothing(row: Row) -> bool:
    """Was it refused, and is it of a kind that no clause asks for its refusal? Nobody is shown such a row.

    Whoever judges requests that may be refused (locks, commits, sends, dead letters) asks for the outcome. An operation
    without an answer (`unknown`, or one way) may have happened, then or later.
    """
    return row.outcome is Outcome.REFUSED and row.kind in (Kind.RESET, Kind.TRIM)


def ended_before(earlier: Row, later: Row) -> bool:
    """Did `earlier` certainly end before `later` began? By the total order (one clock domain)."""
    return earlier.seq_end is not None and earlier.seq_end < later.seq_begin


def is_manual(row: Row) -> bool:
    """Did the listener choose the manual mode for this call?"""
    return row.commit_mode == CommitMode.MANUAL


def asks_again(row: Row) -> bool:
    """Does the call's result ask for the same messages again, after the suspend time?"""
    return row.outcome in LISTENER_SUSPENDS or (row.outcome is Outcome.ROLLBACK and is_manual(row))


def acknowledges(row: Row) -> bool:
    """Does the call's result finish its messages? In auto mode a ROLLBACK does so as well."""
    if is_manual(row):
        return row.outcome is Outcome.COMMIT
    return row.outcome in _AUTO_ACKNOWLEDGES


_AUTO_ACKNOWLEDGES = frozenset({Outcome.SUCCESS, Outcome.COMMIT, Outcome.ROLLBACK})


@lru_cache(maxsize=4096)
def is_copy_topic(topic: str | None) -> bool:
    """A topic that holds copies: of messages to retry, or of messages given up."""
    return topic is not None and topic.startswith((RETRY_PREFIX, DLQ_PREFIX))


def ms(value_us: int) -> str:
    """A duration for people: `1200 ms`, or `1.250 s` from 10 s on."""
    return (
        f"{value_us / 1_000_000:.3f} s"
        if abs(value_us) >= 10_000_000
        else f"{value_us / 1000:g} ms"
    )


def at(row: Row) -> str:
    """A row's begin for people, in seconds of its clock."""
    return f"{row.started_us / 1_000_000:.3f} s"


def who(row: Row) -> str:
    return row.client_id or row.process or "somebody"
