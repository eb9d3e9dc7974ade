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

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import (
    AUTO_MODE,
    BATCH_OF_ONE,
    NO_RESET,
    NO_WALL_CLOCK_STEP,
    NOT_PAUSED,
    ORDERLY,
    Premise,
)
from specs.clauses.rows import ended_before, is_copy_topic, may_be_manual, over_us
from specs.clauses.words import MS, at, ms, who
from specs.history.row import Row
from specs.plan.traits import Stake, Trait
from specs.vocabulary import LISTENER_SUSPENDS, Key, Kind, Outcome, Party

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


class _Work:
    """One incarnation. given_up: the acknowledged dead letter of the message that `last` delivered, with its grant."""

    __slots__ = ("add", "given_up", "last", "lock", "pulls", "renewed")

    def __init__(self, add: Row | None = None) -> None:
        self.add = add
        self.last: Row | None = None
        self.pulls: list[
            Row
        ] = []  # those that were answered late, and of the others the one that reached farthest
        self.given_up: Row | None = None
        self.lock: Row | None = None
        self.renewed: Row | None = None

    def pulled(self, row: Row) -> None:
        best = self.farthest(row.seq_begin)
        self.pulls = [each for each in self.pulls if each is best or not ended_before(each, row)]
        self.pulls.append(row)

    def farthest(self, seq: int) -> Row | None:
        """Of the pulls answered before `seq`, the first that reached farthest."""
        answered = [each for each in self.pulls if each.seq_end is not None and each.seq_end < seq]
        return max(answered, key=lambda each: (each.value or 0, -(each.seq_end or 0)), default=None)


class LaneJudge(Judge):
    """Remembers the last grant of each client, and of each incarnation its last delivery and its pulls."""

    __slots__ = ("cap_us", "locks", "works")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.cap_us = (
            self.config.continuous_ms * MS
        )  # so long a lane may keep its thread before others have their turn
        self.locks: dict[str, Row] = {}
        self.works: dict[str, _Work] = {}

    def begins(self, row: Row) -> Iterable[Finding]:
        match row.kind:
            case Kind.RESET:
                self.works.clear()
            case Kind.ADD if row.incarnation is not None:
                self.works[row.incarnation] = _Work(row)
            case Kind.DROP:
                self.works.pop(row.incarnation or "", None)
            case Kind.DELIVER if row.incarnation is not None:
                work = self._work(row.incarnation)
                found = self._next(work, row)
                work.last, work.given_up, work.lock, work.renewed = row, None, None, None
                return found
            case Kind.PULL if (
                row.outcome is Outcome.OK and row.incarnation is not None and row.value is not None
            ):
                if row.seq_end is not None:
                    self._work(row.incarnation).pulled(row)
            case Kind.UNLOCK:
                self._lost(row)
            case _:
                pass
        return NOTHING

    def _work(self, name: str) -> _Work:
        found = self.works.get(name)
        if found is None:
            found = self.works[name] = _Work()
        return found

    def _next(self, work: _Work, row: Row) -> Iterable[Finding]:
        last, letter, lock = work.last, work.given_up, work.lock
        if (
            last is None
            or letter is None
            or lock is None
            or letter.ended_us is None
            or letter.seq_end is None
        ):
            return NOTHING
        pull = work.farthest(letter.seq_end)
        if pull is None:
            return NOTHING
        until_us = letter.ended_us + self.config.schedule_slack_ms * MS
        there = (last.queue_offset or 0) < (row.queue_offset or 0) < (pull.value or 0)
        client, context = row.client_id, self.context
        lease_us = self.config.client_lease_ms * MS
        add = None if (last.reconsume_times or 0) > 0 else work.add
        renewed = work.renewed if lock.started_us + lease_us < until_us else None
        if (
            not there
            or (renewed or lock).started_us + lease_us < until_us
            or until_us > (add or last).started_us + self.cap_us
            or context.paused_since(client, last.started_us)
            or context.is_leaving(client, row.group)
        ):
            return NOTHING
        self.opportunities += 1
        return (
            NOTHING
            if row.started_us <= until_us
            else (StoodStill(add, last, letter, lock, renewed, pull, row),)
        )

    def _lost(self, row: Row) -> None:
        """The lease was refused, or given back."""
        self.locks.pop(row.client_id or "", None)
        for work in self.works.values():
            if work.lock is not None and work.lock.client_id == row.client_id:
                work.lock = None

    def ends(self, row: Row) -> Iterable[Finding]:
        match row.kind:
            case Kind.LOCK if row.outcome is Outcome.OK:
                self.locks[row.client_id or ""] = row
                self._renewed(row)
            case Kind.LOCK if row.outcome is Outcome.REFUSED:
                self._lost(row)
            case Kind.DEAD_LETTER if row.outcome is Outcome.OK and row.incarnation is not None:
                self._gave_up(self._work(row.incarnation), row)
            case _:
                pass
        return NOTHING

    def _renewed(self, row: Row) -> None:
        """A grant came while the one before was fresh."""
        for work in self.works.values():
            lock = work.lock
            if (
                lock is None
                or work.renewed is not None
                or lock.client_id != row.client_id
                or row.ended_us is None
            ):
                continue
            if row.ended_us <= lock.started_us + self.config.client_lease_ms * MS:
                work.renewed = row

    def _gave_up(self, work: _Work, row: Row) -> None:
        last = work.last
        if (
            last is None
            or last.queue_offset != row.queue_offset
            or is_copy_topic(row.topic)
            or may_be_manual(last)
        ):
            return
        known = (last.reconsume_times or 0) > 0 or work.add is not None
        if last.outcome in LISTENER_SUSPENDS and known and self.config.batch == 1:
            work.given_up, work.lock = row, self.locks.get(row.client_id or "")


judge = LaneJudge


def explain(found: StoodStill) -> str:
    letter, new = found.dead_letter, found.next
    late = ms(new.started_us - over_us(letter))
    return (
        f"{who(new)} started offset {new.queue_offset} of {new.lane} at {at(new)}, {late} after the dead letter of "
        f"offset {letter.queue_offset} was acknowledged; it had the message since {at(found.pull)} and the lease since "
        f"{at(found.lock)}"
    )
