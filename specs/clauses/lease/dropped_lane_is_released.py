"""A client that drops a lane, or shuts down in good order, gives its lease back: nobody has to wait for the expiry.

Found when somebody else is refused the lane though its last owner has dropped it, is long done with it, and has not
even begun to give it back. "Long done": a call of the lane, and what follows it, may still run after the drop, and the
release may come a timer's slack after both, exactly the slack included. An unlock that was begun is enough, since it
may get lost on its way; one that could not be sent at all is none, so nothing is claimed where anything stood between
the client and the broker from the drop until the release was due. Silent when the client crashed since the grant, was
paused since the drop (a pause that was over before says nothing), asks for the lane or adds it again, or its lease has
run out anyway (then the refusal is the broker's business); when the broker crashed since the grant; and when somebody
else was granted the lane since, for then it was lost and not dropped. Two processes under one client id share a lease:
where rows name both, what one of them drops the other one keeps that has added the lane, or called there, and not
dropped it. A shutdown is seen by its DROP rows; a DROP without an end says nothing.

Three findings are told apart from the rest, for clients are built so. *Taken again*: the owner had given the lane back,
asked for it once more without having been assigned it anew, and dropped it after that. *Late after call*, and *late*:
the successor is refused within one rebalance interval (`LATE_MS`, or more) of the moment at which the release was due,
and when the lane was dropped, a call of it ran, or none did.
"""

from __future__ import annotations

from dataclasses import dataclass

from specs.clauses.judging import Finding
from specs.clauses.premises import BROKER_LIVES, NO_WALL_CLOCK_STEP, NOT_PAUSED, ORDERLY, Premise
from specs.clauses.words import at, ms
from specs.facts.findings import Findings
from specs.facts.grants import refuses
from specs.facts.lanes import (
    OP_COLUMNS,
    LaneItems,
    Machine,
    Op,
    Stretch,
    each_lane,
    ended_before,
    ends_as,
)
from specs.facts.segments import MS, NEVER, NO_TEXT
from specs.history.row import Row
from specs.plan.traits import Stake, Trait
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "LSE-16"
TITLE = "a dropped lane is released"
STATEMENT = "A client that drops a lane or shuts down gives the lease back: its successor never waits for the expiry."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (
    ORDERLY,
    NO_WALL_CLOCK_STEP,
    BROKER_LIVES,
    NOT_PAUSED,
    Premise(
        "link at work",
        "no fault of the owner's link to the broker from the drop until the release was due",
        told_by=frozenset({Kind.FAULT}),
    ),
)
SOURCES = ("docs/sources.md#client-leases",)
STAKES = (Stake(Trait.CLEAN_CHANGE, brings=2),)
KINDS = frozenset({Kind.LOCK, Kind.UNLOCK, Kind.ADD, Kind.DROP, Kind.DELIVER, Kind.DEAD_LETTER})
SETTINGS = ("broker_lease_ms", "rebalance_ms")
NEEDS = frozenset({Kind.DROP, Kind.LOCK, Kind.UNLOCK})
CONCLUDES_FROM_ABSENCE = True
COLUMNS = OP_COLUMNS


LATE_MS = 20_000
"""How long clients put a release off: to their next rebalance, or by `unlockDelayTimeMills`; both by default."""


@dataclass(frozen=True, slots=True)
class NotReleased(Finding):
    lock: Row
    drop: Row
    refused: Row


@dataclass(frozen=True, slots=True)
class LateAfterCall(NotReleased):
    """call: ran when the lane was dropped."""

    call: Row


@dataclass(frozen=True, slots=True)
class Late(NotReleased):
    pass


@dataclass(frozen=True, slots=True)
class TakenAgain(NotReleased):
    """unlock: before the grant `lock`, and no new incarnation between them."""

    unlock: Row


class Client:
    """Its drop of the lane, its last unlock, and of its calls and dead letters the one that ends last (`work`).

    busy: the work that ran at the drop. freed: its unlock, until it adds the lane anew. at_work: of each of its
    processes that has not dropped the lane, what it did there last.
    """

    __slots__ = ("at_work", "busy", "drop", "freed", "unlock", "work")

    def __init__(self) -> None:
        self.at_work: dict[int, Op] = {}
        self.freed: Op | None = None
        self.busy: Op | None = None
        self.drop: Op | None = None
        self.unlock: Op | None = None
        self.work: Op | None = None


class Lane(Machine):
    """The lane's last grant, and for each client whether it dropped the lane and gave it back."""

    ENDS = ends_as([Kind.LOCK])

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.clients: dict[int, Client] = {}
        self.lock: Op | None = None
        self.limit_us = self.config.broker_lease_ms * MS
        self.slack_us = self.config.schedule_slack_ms * MS
        self.interval_us = max(self.config.rebalance_ms, LATE_MS) * MS
        self.clocks_us = self.context.info.clock_bound_us
        self.processes = lane.digest.rows.own_process

    def _works(self, op: Op) -> None:
        client = self.clients.setdefault(op.client, Client())
        if client.work is None or op.end >= client.work.end:
            client.work = op

    def takes(self, stretch: Stretch) -> bool:
        self._works(stretch.last)
        self._is_at_work(stretch.last)
        return True

    def _is_at_work(self, op: Op) -> None:
        process = int(self.processes[op.place])
        if process != NO_TEXT:
            self.clients[op.client].at_work[process] = op

    def _drops(self, client: Client, op: Op) -> None:
        """One of the client's processes drops the lane; where another one goes on with it, they keep the lease."""
        process = int(self.processes[op.place])
        client.at_work.pop(process, None)
        others = client.at_work.values() if process != NO_TEXT else ()
        if any(not self.is_of_an_old_life(op.client, each) for each in others):
            client.drop = None
            return
        client.drop = op
        client.busy = None if client.work is None or ended_before(client.work, op) else client.work

    def begins(self, op: Op) -> None:
        if op.client == NO_TEXT:
            return
        client = self.clients.setdefault(op.client, Client())
        if op.kind is Kind.DROP:
            self._drops(client, op)
        elif op.kind in (Kind.ADD, Kind.LOCK):
            client.drop = None
            if op.kind is Kind.ADD:
                client.freed = None
                self._is_at_work(op)
        elif op.kind is Kind.UNLOCK:
            client.unlock = client.freed = op
        else:
            self._works(op)
            if op.kind is Kind.DELIVER:
                self._is_at_work(op)

    def ends(self, op: Op) -> None:
        if op.kind is not Kind.LOCK or op.client == NO_TEXT:
            return
        lock, granted = self.lock, op.outcome is Outcome.OK
        if lock is not None and (granted or refuses(op)):
            drop = self._awaited(lock, op)
            self.stakes += drop is not None
            if drop is not None and not granted:
                self._refused(lock, drop, op)
        if granted:
            self.lock = op

    def _awaited(self, lock: Op, op: Op) -> Op | None:
        """The last owner's drop, where its lease would live through the other's request if it were not given back."""
        if lock.client == op.client or op.ended >= NEVER:
            return None
        drop = self.clients[lock.client].drop
        if drop is None or not ended_before(lock, drop) or not ended_before(drop, op):
            return None
        if op.ended - lock.started + self.clocks_us > self.limit_us or self.broker_died_since(lock):
            return None
        if self.client_died_since(lock.client, lock) or self.paused_since(
            lock.client, drop.started
        ):
            return None
        return drop

    def _refused(self, lock: Op, drop: Op, op: Op) -> None:
        """Who asked was refused the lane: should the owner have begun to give it back, and could it?"""
        owner = self.clients[drop.client]
        if owner.unlock is not None and owner.unlock.begin > lock.begin:
            return
        since = drop.started
        if owner.work is not None:
            if not ended_before(owner.work, op):
                return
            since = max(since, owner.work.over_us)
        late = op.started - since - self.slack_us
        if late - self.clocks_us <= 0:
            return
        # Links suffer for the delay bound after a fault; here only what lasted beyond the drop counts.
        after = drop.started + self.config.delay_bound_ms * MS
        if self.was_disturbed(drop.client, Kind.UNLOCK, after, since + self.slack_us):
            return
        if owner.freed is not None and owner.freed.begin < lock.begin:
            self.broken(TakenAgain, lock=lock, drop=drop, refused=op, unlock=owner.freed)
        elif late > self.interval_us:
            self.broken(NotReleased, lock=lock, drop=drop, refused=op)
        elif owner.busy is None:
            self.broken(Late, lock=lock, drop=drop, refused=op)
        else:
            self.broken(LateAfterCall, lock=lock, drop=drop, refused=op, call=owner.busy)


judge = each_lane(Lane, KINDS, lease=True)


def explain(found: NotReleased) -> str:
    lock, drop, refused = found.lock, found.drop, found.refused
    later = ms(refused.started_us - drop.started_us)
    if isinstance(found, TakenAgain):
        return (
            f"{refused.client_id} was refused {refused.lane} at {at(refused)}, {later} after {drop.client_id} had "
            f"dropped it; {drop.client_id} had given it back at {at(found.unlock)}, and taken it again at {at(lock)}"
        )
    return (
        f"{refused.client_id} was refused {refused.lane} at {at(refused)}, {later} after {drop.client_id}, who was "
        f"granted it at {at(lock)}, had dropped it and not given it back"
    )
