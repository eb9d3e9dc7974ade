"""A suspended batch comes again soon after its suspend time, while its incarnation owns the lane.

The time is that of RTY-1; where the message was to be given up and its dead letter failed, it counts from the end of
that send. One of which nobody saw the answer has failed if the message itself comes again; until then nothing is owed.
Refuted by whatever the client does on the lane more than the bound (`schedule_slack_ms`) later while no call has begun;
where the listener asked for less than the consumer's own time, the bound ends as that would (after half of it at the
earliest), since who takes a short time for none asked must not pass. What comes later than that: the call itself, a
request for the lease, or the drop. Claimed only where nothing else can have kept the lane: one grant of the lease was
answered before the time was up and is still fresh when the bound ends, nothing was refused, left unanswered or given
back since, and no request for it is under way; the client was not paused, did not die and is not shutting down; and it
has twice as many threads as it ever added lanes, so that none waits for one. The thread that brings a batch back may be
the one that renews leases, which asks one broker after the other: for each other broker of which the client ever added
a lane the bound is longer by the time that it waits for an answer (`LOCK_WAIT_MS`). Says nothing of a batch of which a
message's retries were used up and of whose dead letter there is no row, nor about an incarnation that does nothing any
more.

Where only a part of the batch comes again, the rest is due when the call of that part has ended well, or at the time of
the batch if that is later, and may take the whole bound from then on. Nothing is said of the rest where that part asks
to come again too, or is given up. A call beyond the batch is ORD-3's matter: after it the rest is forgotten."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from specs.clauses.judging import Finding
from specs.clauses.premises import NO_RESET, NO_WALL_CLOCK_STEP, NOT_PAUSED, ORDERLY, Premise
from specs.clauses.words import at, ms, who
from specs.facts.findings import Findings
from specs.facts.lanes import (
    OP_COLUMNS,
    LaneItems,
    Machine,
    Op,
    Stretch,
    asks_again,
    each_lane,
    ends_as,
    may_put_back,
    own_wait_ms,
    wait_ms,
)
from specs.facts.segments import MS, NEVER, NO_TEXT
from specs.history.row import Row
from specs.plan.traits import Stake, Trait
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "RTY-2"
TITLE = "a suspended batch comes again in time"
STATEMENT = "An incarnation that owns its lane redelivers a suspended batch within the suspend time plus the bound."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (
    ORDERLY,
    NO_WALL_CLOCK_STEP,
    NO_RESET,
    NOT_PAUSED,
    Premise("fresh lease", "a grant was answered before the time was up, and outlives the bound"),
    Premise("threads for all lanes", "the client has twice as many threads as it ever added lanes"),
)
SOURCES = ("docs/sources.md#orderly-loop",)
STAKES = (Stake(Trait.FRESH_LEASE),)
KINDS = frozenset(
    {Kind.DELIVER, Kind.DEAD_LETTER, Kind.LOCK, Kind.UNLOCK, Kind.ADD, Kind.DROP, Kind.RESET}
)
SETTINGS = ("client_lease_ms", "max_reconsume_times", "suspend_ms", "threads")
NEEDS = frozenset({Kind.DELIVER, Kind.LOCK})
EXCUSED_BY = frozenset({Kind.CRASH, Kind.LEAVE})
COLUMNS = OP_COLUMNS

LOCK_WAIT_MS = 1000
"""So long Apache's client waits for the answer of each broker that it asks for leases."""

_GOES_ON = frozenset({Outcome.SUCCESS, Outcome.COMMIT})
"""After these the lane goes on, in whatever mode."""


@dataclass(frozen=True, slots=True)
class TooLate(Finding):
    """add: where the incarnation began. dead_letter: the failed send from whose end the time counts, if there was one.

    seen: what came too late.
    """

    add: Row
    suspended: Row
    dead_letter: Row | None
    lock: Row
    seen: Row
    due_us: int


@dataclass(frozen=True, slots=True)
class RestTooLate(Finding):
    """Likewise, where a part of the batch had come again: part, a delivery of it, before and after."""

    add: Row
    suspended: Row
    dead_letter: Row | None
    part: tuple[Row, ...]
    lock: Row
    seen: Row
    due_us: int


class Waiting:
    """A suspended batch of one incarnation, or what is left of it: when it is due (NEVER: a dead letter decides), under
    which grant. ops: its deliveries, by offset. part: of what has come again, before and after."""

    __slots__ = ("add", "due", "letter", "lock", "op", "ops", "part")

    def __init__(self, add: Op, op: Op) -> None:
        self.add = add
        self.op = op
        self.ops: dict[int, Op] = {}
        self.part: tuple[Op, ...] = ()
        self.due = NEVER
        self.letter: Op | None = None
        self.lock: Op | None = None

    @property
    def may_be_taken(self) -> bool:
        """Did nobody see how its dead letter was answered?"""
        return self.letter is not None and self.letter.outcome is not Outcome.REFUSED

    def comes_again(self, op: Op) -> bool:
        """Is the message of the dead letter delivered?"""
        return (
            self.letter is not None and op.kind is Kind.DELIVER and op.offset == self.letter.offset
        )


class Lane(Machine):
    """The last grant of each client, what waits to come again, and the rest of what comes again in part.

    A stretch is passed over where no suspended batch waits.
    """

    ENDS = ends_as([Kind.DELIVER, Kind.DEAD_LETTER, Kind.LOCK])

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.adds: dict[int, Op] = {}
        self.locks: dict[int, Op] = {}
        self.waiting: dict[int, Waiting] = {}
        self.rest: dict[int, Waiting] = {}
        self.under_way: set[int] = set()  # clients of which a request takes time
        self.slack = self.config.schedule_slack_ms * MS

    def takes(self, stretch: Stretch) -> bool:
        name = stretch.first.incarnation
        return name not in self.waiting and name not in self.rest

    def begins(self, op: Op) -> None:
        if op.kind is Kind.RESET:
            self.waiting.clear()
            self.rest.clear()
        elif op.kind is Kind.ADD:
            self.adds[op.incarnation] = op
            self.waiting.pop(op.incarnation, None)
            self.rest.pop(op.incarnation, None)
        elif op.kind in (Kind.DELIVER, Kind.DROP):
            waiting = self.waiting.pop(op.incarnation, None)
            if op.kind is Kind.DROP:
                self.adds.pop(op.incarnation, None)
                self.rest.pop(op.incarnation, None)
            if waiting is not None:
                self._seen(waiting, op)
            if op.kind is Kind.DELIVER:
                self._again(waiting, op)
        elif op.kind is Kind.DEAD_LETTER:
            self.rest.pop(op.incarnation, None)
            if op.incarnation in self.waiting:
                self.waiting[op.incarnation].due = NEVER
        elif op.kind is Kind.LOCK:
            for name, waiting in list(self.waiting.items()):
                if (
                    waiting.op.client == op.client
                    and waiting.due < NEVER
                    and not waiting.may_be_taken
                    and op.started > self._until(waiting)
                ):
                    del self.waiting[name]
                    self._seen(waiting, op)
            if op.end > op.begin:
                self.under_way.add(op.client)
        elif op.kind is Kind.UNLOCK:
            self._lost(op)

    def _again(self, waiting: Waiting | None, op: Op) -> None:
        """Is the delivery of a part of the batch that waited?"""
        offset = max(op.offset, 0)
        before = None if waiting is None else waiting.ops.pop(offset, None)
        if waiting is None and op.incarnation in self.rest:
            rest = self.rest[op.incarnation]
            if rest.part[1].op == op.op:
                rest.ops.pop(offset, None)
                return
        self.rest.pop(op.incarnation, None)
        if waiting is not None and before is not None and waiting.due < NEVER:
            rest = self.rest[op.incarnation] = Waiting(waiting.add, waiting.op)
            rest.ops, rest.part = waiting.ops, (before, op)
            rest.letter, rest.due = waiting.letter, waiting.due

    def _part_ended(self, op: Op) -> None:
        """Where a part of a batch has come again and ended well, the rest is due."""
        rest = self.rest.get(op.incarnation)
        if rest is None or rest.part[1].op != op.op:
            return
        by_rollback = op.outcome is Outcome.ROLLBACK and not may_put_back(op)
        well = op.outcome in _GOES_ON or by_rollback
        if not well or op.ended >= NEVER or not rest.ops:
            del self.rest[op.incarnation]
            if self.waiting.get(op.incarnation) is rest:
                del self.waiting[op.incarnation]
            return
        own = self.config.suspend_ms
        rest.op = rest.ops[min(rest.ops)]
        asked = [each.ended + wait_ms(each, own) * MS for each in rest.ops.values()]
        rest.due = max(rest.due, op.ended, *asked)
        rest.lock = self.locks.get(op.client)
        self.waiting[op.incarnation] = rest

    def _seen(self, waiting: Waiting, op: Op) -> None:
        lock, client = waiting.lock, waiting.op.client
        if waiting.due == NEVER or lock is None or client in self.under_way:
            return
        if waiting.may_be_taken and not waiting.comes_again(op):
            return
        until = self._until(waiting)
        kept = lock.started + self.config.client_lease_ms * MS >= until
        there = not self.paused_since(client, waiting.op.started) and not self.leaving(client)
        if not kept or not there or self.client_died_since(client, waiting.op):
            return
        if not self.context.has_threads(self.lane.name(client), self.now):
            return
        comes = op.kind is Kind.DELIVER and (not waiting.part or op.offset in waiting.ops)
        self.stakes += comes or op.started > until
        if op.started > until:
            tell = partial(
                self.broken,
                also={"due_us": waiting.due},
                add=waiting.add,
                suspended=waiting.op,
                dead_letter=waiting.letter,
                lock=lock,
                seen=op,
            )
            if waiting.part:
                tell(RestTooLate, part=waiting.part)
            else:
                tell(TooLate)

    def _until(self, waiting: Waiting) -> int:
        """The end of the bound: sooner where the consumer's own, longer time would be over."""
        brokers = self.context.brokers_of(self.lane.name(waiting.op.client), self.now)
        due = waiting.due + max(brokers - 1, 0) * LOCK_WAIT_MS * MS
        if waiting.part:
            return due + self.slack
        asked, own = (
            wait_ms(waiting.op, self.config.suspend_ms),
            own_wait_ms(self.config.suspend_ms),
        )
        if asked >= own:
            return due + self.slack
        return due + min(self.slack, max(self.slack // 2 // MS * MS, (own - asked - 1) * MS))

    def _lost(self, op: Op) -> None:
        self.locks.pop(op.client, None)
        for waiting in self.waiting.values():
            if waiting.op.client == op.client:
                waiting.lock = None

    def ends(self, op: Op) -> None:
        if op.kind is Kind.DELIVER:
            self._part_ended(op)
            self._ended(op)
        elif op.kind is Kind.DEAD_LETTER and op.incarnation in self.waiting:
            if op.outcome is Outcome.OK:
                del self.waiting[op.incarnation]
            else:
                self.waiting[op.incarnation].letter = op
                self._wait(self.waiting[op.incarnation], op)
        elif op.kind is Kind.LOCK:
            self.under_way.discard(op.client)
            if op.outcome is not Outcome.OK:
                self._lost(op)
                return
            self.locks[op.client] = op
            for waiting in self.waiting.values():
                if (
                    waiting.op.client == op.client
                    and waiting.due < NEVER
                    and op.ended <= waiting.due - MS
                ):
                    waiting.lock = op

    def _ended(self, op: Op) -> None:
        add = self.adds.get(op.incarnation)
        if add is None or op.incarnation == NO_TEXT or op.client == NO_TEXT or not asks_again(op):
            return
        before = self.waiting.get(op.incarnation)
        sure = before is None or before.op.op != op.op or before.due < NEVER
        waiting = self.waiting[op.incarnation] = Waiting(add, op)
        if before is not None and before.op.op == op.op:
            waiting.ops = before.ops
        if op.offset >= 0:
            waiting.ops[op.offset] = op
        # As long as one message of the batch may be on its way to the dead letters, the time has not begun.
        if sure and not self.used_up(op):
            self._wait(waiting, op)

    def _wait(self, waiting: Waiting, after: Op) -> None:
        if after.ended < NEVER:
            waiting.due = after.ended + wait_ms(waiting.op, self.config.suspend_ms) * MS
            waiting.lock = self.locks.get(waiting.op.client)


judge = each_lane(Lane, KINDS, lease=True)


def explain(found: TooLate | RestTooLate) -> str:
    row, seen = found.suspended, found.seen
    due = f"{found.due_us / 1_000_000:.3f} s"
    said = f"offset {row.queue_offset} of {row.lane} ended {row.outcome} and was due again at {due}"
    lease = f"{who(row)} had the lease since {at(found.lock)}"
    how = "delivered again"
    if isinstance(found, RestTooLate):
        again, how = found.part[1], "began the next call"
        said = (
            f"{said}, after offset {again.queue_offset} of its batch had come again at {at(again)}"
        )
    if seen.kind is Kind.DELIVER:
        late = ms(seen.started_us - found.due_us)
        return f"{said}, but {who(seen)} {how} only at {at(seen)}, {late} later; {lease}"
    what = "dropped the lane" if seen.kind is Kind.DROP else "asked for the lease"
    return f"{said}, but had not come again when {who(seen)} {what} at {at(seen)}; {lease}"
