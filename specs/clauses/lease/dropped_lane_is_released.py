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

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.grants import refuses
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import (
    BROKER_LIVES,
    NO_WALL_CLOCK_STEP,
    NOT_PAUSED,
    ORDERLY,
    Premise,
)
from specs.clauses.rows import ended_before, over_us, own_process
from specs.clauses.words import MS, at, ms
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


class _Client:
    """work: of its calls and dead letters on the lane the one that ends last. drop: since when it has no use for it.

    call: the work that ran when it was dropped. released: its unlock, while no new incarnation has begun. at_work: of
    each of its processes that has not dropped the lane, what it did there last.
    """

    __slots__ = ("at_work", "call", "drop", "released", "unlock", "work")

    def __init__(self) -> None:
        self.at_work: dict[str, Row] = {}
        self.released: Row | None = None
        self.call: Row | None = None
        self.drop: Row | None = None
        self.unlock: Row | None = None
        self.work: Row | None = None


class LaneJudge(Judge):
    """Remembers the lane's last grant, and for each client whether it dropped the lane and gave it back."""

    __slots__ = ("bound_us", "clients", "interval_us", "limit_us", "lock", "slack_us")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.clients: dict[str, _Client] = {}
        self.lock: Row | None = None
        self.limit_us = self.config.broker_lease_ms * MS
        self.slack_us = self.config.schedule_slack_ms * MS
        self.interval_us = max(self.config.rebalance_ms, LATE_MS) * MS
        self.bound_us = context.info.clock_bound_us

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.client_id is None:
            return NOTHING
        client = self.clients.get(row.client_id)
        if client is None:
            client = self.clients[row.client_id] = _Client()
        self._shows_at_work(client, row)
        match row.kind:
            case Kind.DROP if self._is_kept(client, row):
                client.drop = None
            case Kind.DROP:
                work = client.work
                client.drop = row
                client.call = work if work is not None and not ended_before(work, row) else None
            case Kind.ADD | Kind.LOCK:
                client.drop = None
                if row.kind is Kind.ADD:
                    client.released = None
            case Kind.UNLOCK:
                client.unlock = client.released = row
            case _:
                work = client.work
                if (
                    work is None
                    or row.seq_end is None
                    or (work.seq_end is not None and row.seq_end >= work.seq_end)
                ):
                    client.work = row
        return NOTHING

    def _shows_at_work(self, client: _Client, row: Row) -> None:
        """Which of the client's processes are at work on the lane, as far as rows name them?"""
        process = own_process(row)
        if process is None:
            return
        if row.kind is Kind.DROP:
            client.at_work.pop(process, None)
        elif row.kind in (Kind.ADD, Kind.DELIVER):
            client.at_work[process] = row

    def _is_kept(self, client: _Client, drop: Row) -> bool:
        """Does another process of the client id, which shares its lease, go on with the lane?"""
        return own_process(drop) is not None and not all(
            self.context.is_of_an_old_life(drop.client_id, drop.group, row)
            for row in client.at_work.values()
        )

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.kind is not Kind.LOCK or row.client_id is None:
            return NOTHING
        if row.outcome is Outcome.OK:
            drop = self._awaited(row)
            self.opportunities += drop is not None
            self.lock = row
        elif refuses(row) and self.lock is not None and (drop := self._awaited(row)) is not None:
            self.opportunities += 1
            due_us = self._due_us(drop, row)
            if due_us is not None and row.started_us - self.bound_us > due_us:
                return (self._told_apart(self.lock, drop, row, due_us),)
        return NOTHING

    def _told_apart(self, lock: Row, drop: Row, row: Row, due_us: int) -> Finding:
        owner = self.clients[drop.client_id or ""]
        if owner.released is not None and owner.released.seq_begin < lock.seq_begin:
            return TakenAgain(lock, drop, row, owner.released)
        if row.started_us - due_us > self.interval_us:
            return NotReleased(lock, drop, row)
        call = owner.call
        return Late(lock, drop, row) if call is None else LateAfterCall(lock, drop, row, call)

    def _awaited(self, row: Row) -> Row | None:
        """The last owner's drop, where its lease would live through the other's request if it were not given back."""
        lock = self.lock
        if lock is None or lock.client_id == row.client_id or row.ended_us is None:
            return None
        drop = self.clients[lock.client_id or ""].drop
        if drop is None or not ended_before(lock, drop) or not ended_before(drop, row):
            return None
        context = self.context
        age_us = row.ended_us - lock.started_us + self.bound_us
        if age_us > self.limit_us or context.broker_died_since(row.broker, lock):
            return None
        if context.client_died_since(lock.client_id, lock) or context.paused_since(
            lock.client_id, drop.started_us
        ):
            return None
        return drop

    def _due_us(self, drop: Row, row: Row) -> int | None:
        """When the owner should have begun to give the lane back, at the latest; None where it did or could not."""
        lock, owner = self.lock, self.clients[drop.client_id or ""]
        if lock is None or (owner.unlock is not None and owner.unlock.seq_begin > lock.seq_begin):
            return None
        since_us = drop.started_us
        if owner.work is not None:
            if not ended_before(owner.work, row):
                return None
            since_us = max(since_us, over_us(owner.work))
        due_us = since_us + self.slack_us
        # Links suffer for the delay bound after a fault; here only what lasted beyond the drop counts.
        since_us = drop.started_us + self.config.delay_bound_ms * MS
        unlock = drop._replace(kind=Kind.UNLOCK, started_us=since_us)
        return None if self.context.is_disturbed(unlock, due_us) else due_us


judge = LaneJudge


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
