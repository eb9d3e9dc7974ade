"""Once a message was given up, its lane goes on with the next one, without any pause.

In auto mode giving a message up ends it like a success. So when its dead letter was acknowledged, and the next
message was there, the next call begins within the bound (`schedule_slack_ms`). Claimed only where nothing else can
have kept the lane: a pull that was answered before had brought the next message; a grant of the lease, or the one
that renewed it in time, is fresh until the bound ends, nothing refused and nothing given back since; the client was
not paused and is not shutting down; one message per call; and the lane had its thread for less than the cap on
continuous work (`continuous_ms`), after which it has to make room for others: since the last delivery, if that was a
retry, else since it was added at the earliest. Says nothing where no further call comes.
"""

from __future__ import annotations

from dataclasses import dataclass

from specs.clauses.judging import Finding
from specs.clauses.premises import (
    AUTO_MODE,
    BATCH_OF_ONE,
    NO_RESET,
    NO_WALL_CLOCK_STEP,
    NOT_PAUSED,
    ORDERLY,
    Premise,
)
from specs.clauses.rows import over_us
from specs.clauses.words import at, ms, who
from specs.facts.findings import Findings
from specs.facts.lanes import (
    OP_COLUMNS,
    LaneItems,
    Machine,
    Op,
    Stretch,
    each_lane,
    ends_as,
    may_be_manual,
)
from specs.facts.segments import MS, NEVER, NO_TEXT, NONE
from specs.history.row import Row
from specs.plan.traits import Stake, Trait
from specs.vocabulary import DLQ_PREFIX, LISTENER_SUSPENDS, RETRY_PREFIX, Key, Kind, Outcome, Party

ID = "DLQ-9"
TITLE = "the lane goes on after giving up"
STATEMENT = "In auto mode, once a message was given up the lane goes on with the next one at once."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (
    ORDERLY,
    BATCH_OF_ONE,
    AUTO_MODE,
    NO_WALL_CLOCK_STEP,
    NO_RESET,
    NOT_PAUSED,
    Premise("fresh lease", "a grant was answered before, and it or its renewal outlives the bound"),
    Premise("the next message is there", "a pull that was answered before had brought it"),
    Premise(
        "a thread of its own",
        "the lane has its thread for less than the cap: since a retry, or since its add",
    ),
)
SOURCES = ("docs/sources.md#dead-letters", "docs/sources.md#orderly-loop")
STAKES = (Stake(Trait.FRESH_LEASE),)
KINDS = frozenset(
    {
        Kind.DELIVER,
        Kind.DEAD_LETTER,
        Kind.LOCK,
        Kind.UNLOCK,
        Kind.PULL,
        Kind.ADD,
        Kind.DROP,
        Kind.RESET,
    }
)
SETTINGS = ("client_lease_ms", "continuous_ms")
NEEDS = frozenset({Kind.DEAD_LETTER, Kind.DELIVER, Kind.LOCK, Kind.PULL})
EXCUSED_BY = frozenset({Kind.CRASH, Kind.LEAVE})
COLUMNS = OP_COLUMNS


@dataclass(frozen=True, slots=True)
class StoodStill(Finding):
    """add: where the incarnation began, where the message was no retry. last: its last delivery.

    renewed: the grant that followed in time, where it is needed. pull: it had brought the next message.
    """

    add: Row | None
    last: Row
    dead_letter: Row
    lock: Row
    renewed: Row | None
    pull: Row
    next: Row


class Work:
    """One incarnation: its last delivery, its pulls, and the acknowledged dead letter of what it delivered last."""

    __slots__ = ("add", "last", "letter", "lock", "pulls", "renewed")

    def __init__(self, add: Op | None = None) -> None:
        self.add = add
        self.last: Op | None = None
        self.letter: Op | None = None
        self.lock: Op | None = None
        self.renewed: Op | None = None
        self.pulls: list[Op] = []


class Lane(Machine):
    """By incarnation what it did last, by client its last grant: only the call after a dead letter is looked at."""

    ENDS = ends_as([Kind.LOCK, Kind.DEAD_LETTER], [Outcome.OK, Outcome.REFUSED])
    STAKE = Kind.DEAD_LETTER

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.cap = self.config.continuous_ms * MS
        self.locks: dict[int, Op] = {}
        self.works: dict[int, Work] = {}
        self.counts = self.config.batch == 1 and not lane.topic.startswith(
            (RETRY_PREFIX, DLQ_PREFIX)
        )

    def _work(self, name: int) -> Work:
        found = self.works.get(name)
        if found is None:
            found = self.works[name] = Work()
        return found

    def takes(self, stretch: Stretch) -> bool:
        work = self._work(stretch.first.incarnation)
        if work.letter is not None:
            return False
        work.last = stretch.last
        for pull in self.inside:
            self.begins(pull)
        return True

    def begins(self, op: Op) -> None:
        if op.kind is Kind.RESET:
            self.works.clear()
        elif op.kind is Kind.ADD:
            if op.incarnation != NO_TEXT:
                self.works[op.incarnation] = Work(op)
        elif op.kind is Kind.DROP:
            self.works.pop(op.incarnation, None)
        elif op.kind is Kind.UNLOCK:
            self._lost(op)
        elif op.kind is Kind.PULL and op.incarnation != NO_TEXT:
            if op.outcome is Outcome.OK and op.end < NEVER and op.value != NONE:
                self._work(op.incarnation).pulls.append(op)
        elif op.kind is Kind.DELIVER and op.incarnation != NO_TEXT:
            work = self._work(op.incarnation)
            if work.last is not None and work.letter is not None and work.lock is not None:
                self._next(work, work.last, work.letter, work.lock, op)
            work.last, work.letter, work.lock, work.renewed = op, None, None, None

    def _next(self, work: Work, last: Op, letter: Op, lock: Op, op: Op) -> None:
        pull: Op | None = None
        for each in sorted(work.pulls, key=lambda each: each.end):
            if each.end < letter.end and (pull is None or each.value > pull.value):
                pull = each
        work.pulls = [] if pull is None else [each for each in work.pulls if each.end >= pull.end]
        until = letter.ended + self.config.schedule_slack_ms * MS
        if pull is None or not last.offset < op.offset < pull.value:
            return
        lease = self.config.client_lease_ms * MS
        add = None if last.reconsume > 0 else work.add
        renewed = work.renewed if lock.started + lease < until else None
        if (renewed or lock).started + lease < until or until > (add or last).started + self.cap:
            return
        if self.paused_since(op.client, last.started) or self.leaving(op.client):
            return
        self.stakes += 1
        if op.started > until:
            self.broken(
                StoodStill,
                add=add,
                last=last,
                dead_letter=letter,
                lock=lock,
                renewed=renewed,
                pull=pull,
                next=op,
            )

    def _lost(self, op: Op) -> None:
        self.locks.pop(op.client, None)
        for work in self.works.values():
            if work.lock is not None and work.lock.client == op.client:
                work.lock = None

    def _renewed(self, op: Op) -> None:
        lease = self.config.client_lease_ms * MS
        for work in self.works.values():
            lock = work.lock
            fresh = (
                lock is not None and lock.client == op.client and op.ended <= lock.started + lease
            )
            if fresh and work.renewed is None:
                work.renewed = op

    def ends(self, op: Op) -> None:
        if op.kind is Kind.LOCK:
            if op.outcome is Outcome.OK:
                self.locks[op.client] = op
                self._renewed(op)
            elif op.outcome is Outcome.REFUSED:
                self._lost(op)
        elif (
            op.kind is Kind.DEAD_LETTER
            and op.outcome is Outcome.OK
            and op.incarnation != NO_TEXT
            and self.counts
        ):
            work = self._work(op.incarnation)
            last = work.last
            in_vain = last is not None and last.outcome in LISTENER_SUSPENDS
            in_vain = in_vain and last is not None and not may_be_manual(last)
            known = last is not None and (last.reconsume > 0 or work.add is not None)
            if last is not None and in_vain and known and last.offset == op.offset:
                work.letter, work.lock = op, self.locks.get(op.client)


judge = each_lane(Lane, KINDS - {Kind.PULL}, lease=True, asides=(Kind.PULL,))


def explain(found: StoodStill) -> str:
    letter, new = found.dead_letter, found.next
    late = ms(new.started_us - over_us(letter))
    return (
        f"{who(new)} started offset {new.queue_offset} of {new.lane} at {at(new)}, {late} after the dead letter of "
        f"offset {letter.queue_offset} was acknowledged; it had the message since {at(found.pull)} and the lease since "
        f"{at(found.lock)}"
    )
