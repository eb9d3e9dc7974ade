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

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import NO_RESET, NO_WALL_CLOCK_STEP, NOT_PAUSED, ORDERLY, Premise
from specs.clauses.retry.no_redelivery_before_suspend import (
    SUSPEND_MS_MAX,
    SUSPEND_MS_MIN,
    suspend_ms,
)
from specs.clauses.rows import acknowledges, asks_again, may_be_given_up, may_put_back, over_us
from specs.clauses.words import MS, at, ms, who
from specs.history.row import Row
from specs.plan.traits import Stake, Trait
from specs.vocabulary import LISTENER_SUSPENDS, Key, Kind, Outcome, Party

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


class _Waiting:
    """A suspended batch, or what is left of it. due_us: None while (or after) its dead letter decides; lock: the grant
    that is looked at; rows: its deliveries, by offset; part: of what has come again, before and after."""

    __slots__ = ("add", "dead_letter", "due_us", "lock", "part", "row", "rows")

    def __init__(self, add: Row, row: Row) -> None:
        self.add = add
        self.row = row
        self.rows: dict[int, Row] = {}
        self.part: tuple[Row, ...] = ()
        self.dead_letter: Row | None = None
        self.due_us: int | None = None
        self.lock: Row | None = None


class LaneJudge(Judge):
    """Remembers the last grant of each client, and of each incarnation where it began and its suspended batch.

    rest: what is left of a batch of which a part is being delivered again. asking: clients of which a request for the
    lease is under way.
    """

    __slots__ = ("adds", "asking", "locks", "rest", "waiting")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.adds: dict[str, Row] = {}
        self.locks: dict[str, Row] = {}
        self.waiting: dict[str, _Waiting] = {}
        self.rest: dict[str, _Waiting] = {}
        self.asking: set[str] = set()

    # ------------------------------------------------------------ begins

    def begins(self, row: Row) -> Iterable[Finding]:
        found: Iterable[Finding] = NOTHING
        match row.kind:
            case Kind.RESET:
                self.waiting.clear()
                self.rest.clear()
            case Kind.ADD:
                self.adds[row.incarnation or ""] = row
                self.waiting.pop(row.incarnation or "", None)
                self.rest.pop(row.incarnation or "", None)
            case Kind.DELIVER | Kind.DROP:
                waiting = self.waiting.pop(row.incarnation or "", None)
                if row.kind is Kind.DROP:  # a call that still runs owes nothing when it ends
                    self.adds.pop(row.incarnation or "", None)
                    self.rest.pop(row.incarnation or "", None)
                if waiting is not None:
                    found = self._seen(waiting, row)
                if row.kind is Kind.DELIVER:
                    self._comes_again(waiting, row)
            case Kind.DEAD_LETTER:
                self.rest.pop(row.incarnation or "", None)
                waiting = self.waiting.get(row.incarnation or "")
                if waiting is not None:
                    waiting.due_us = None
            case Kind.LOCK:
                found = self._asked(row)
                if row.seq_end is None or row.seq_end > row.seq_begin:
                    self.asking.add(row.client_id or "")
            case Kind.UNLOCK:
                self._lost(row)
            case _:
                pass
        return found

    def _comes_again(self, waiting: _Waiting | None, row: Row) -> None:
        """A delivery begins: is it of a part of the batch that waited?"""
        name, offset = row.incarnation or "", row.queue_offset or 0
        rest = self.rest.get(name)
        if waiting is None:
            if rest is not None and rest.part[1].op_id == row.op_id:
                rest.rows.pop(offset, None)
            else:
                self.rest.pop(name, None)
            return
        self.rest.pop(name, None)
        before = waiting.rows.pop(offset, None)
        if before is not None and waiting.due_us is not None:
            rest = self.rest[name] = _Waiting(waiting.add, waiting.row)
            rest.rows, rest.part = waiting.rows, (before, row)
            rest.dead_letter, rest.due_us = waiting.dead_letter, waiting.due_us

    def _asked(self, row: Row) -> list[Finding]:
        """The client is alive: whatever should have come again by now is late."""
        found: list[Finding] = []
        for name, waiting in list(self.waiting.items()):
            mine = waiting.row.client_id == row.client_id and _tells(waiting, row)
            if mine and self._is_late(waiting, row):
                found.extend(self._seen(waiting, row))
                del self.waiting[name]
        return found

    def _is_late(self, waiting: _Waiting, row: Row) -> bool:
        return waiting.due_us is not None and row.started_us > self._until_us(
            waiting, waiting.due_us
        )

    def _until_us(self, waiting: _Waiting, due_us: int) -> int:
        """The end of the bound."""
        slack_ms, own_ms = self.config.schedule_slack_ms, self.config.suspend_ms
        others = max(0, self.context.brokers_of(waiting.row.client_id) - 1)
        due_us += others * LOCK_WAIT_MS * MS
        if waiting.part:
            return due_us + slack_ms * MS
        less_ms = min(max(own_ms, SUSPEND_MS_MIN), SUSPEND_MS_MAX) - suspend_ms(waiting.row, own_ms)
        if less_ms > 0:
            slack_ms = min(slack_ms, max(slack_ms // 2, less_ms - 1))
        return due_us + slack_ms * MS

    def _seen(self, waiting: _Waiting, row: Row) -> Iterable[Finding]:
        due_us, lock, suspended = waiting.due_us, waiting.lock, waiting.row
        if due_us is None or lock is None or not _tells(waiting, row):
            return NOTHING
        until_us = self._until_us(waiting, due_us)
        context, client = self.context, suspended.client_id
        if (
            client in self.asking
            or lock.started_us + self.config.client_lease_ms * MS < until_us
            or context.paused_since(client, suspended.started_us)
            or context.is_leaving(client, row.group)
            or context.client_died_since(client, suspended)
            or not context.has_threads(client)
        ):
            return NOTHING
        is_late = self._is_late(waiting, row)
        comes = row.kind is Kind.DELIVER and (not waiting.part or row.queue_offset in waiting.rows)
        if is_late or comes:
            self.opportunities += 1
        if not is_late:
            return NOTHING
        letter, part = waiting.dead_letter, waiting.part
        if part:
            return (RestTooLate(waiting.add, suspended, letter, part, lock, row, due_us),)
        return (TooLate(waiting.add, suspended, letter, lock, row, due_us),)

    def _lost(self, row: Row) -> None:
        """The lease was refused, or given back, or nobody saw the answer."""
        self.locks.pop(row.client_id or "", None)
        for waiting in self.waiting.values():
            if waiting.row.client_id == row.client_id:
                waiting.lock = None

    # ------------------------------------------------------------ ends

    def ends(self, row: Row) -> Iterable[Finding]:
        match row.kind:
            case Kind.DELIVER:
                self._part_ended(row)
                self._ended(row)
            case Kind.DEAD_LETTER:
                waiting = self.waiting.get(row.incarnation or "")
                if waiting is None:
                    pass
                elif row.outcome is Outcome.OK:
                    del self.waiting[row.incarnation or ""]
                else:
                    waiting.dead_letter = row
                    self._wait(waiting, row.ended_us)
            case Kind.LOCK:
                self.asking.discard(row.client_id or "")
                if row.outcome is Outcome.OK:
                    self._granted(row)
                else:
                    self._lost(row)
            case _:
                pass
        return NOTHING

    def _part_ended(self, row: Row) -> None:
        """Where a part of a batch has come again and ended well, the rest is due."""
        name = row.incarnation or ""
        rest = self.rest.get(name)
        if rest is None or rest.part[1].op_id != row.op_id:
            return
        went_well = row.outcome in _GOES_ON or (acknowledges(row) and not may_put_back(row))
        if not went_well or row.ended_us is None or rest.due_us is None or not rest.rows:
            del self.rest[name]
            if self.waiting.get(name) is rest:
                del self.waiting[name]
            return
        rest.row = rest.rows[min(rest.rows)]
        own_ms = self.config.suspend_ms
        asked = (over_us(each) + suspend_ms(each, own_ms) * MS for each in rest.rows.values())
        rest.due_us = max(rest.due_us, row.ended_us, *asked)
        rest.lock = self.locks.get(row.client_id or "")
        self.waiting[name] = rest

    def _ended(self, row: Row) -> None:
        add = self.adds.get(row.incarnation or "")
        if row.incarnation is None or row.client_id is None or add is None or not asks_again(row):
            return
        before = self.waiting.get(row.incarnation)
        of_batch = before is not None and before.row.op_id == row.op_id
        unsure = row.outcome in LISTENER_SUSPENDS and may_be_given_up(row, self.config)
        waiting = self.waiting[row.incarnation] = _Waiting(add, row)
        if of_batch and before is not None:
            waiting.rows = before.rows
        if row.queue_offset is not None:
            waiting.rows[row.queue_offset] = row
        # As long as one message of the batch may be on its way to the dead letters, the time has not begun.
        if not unsure and not (of_batch and before is not None and before.due_us is None):
            self._wait(waiting, row.ended_us)

    def _wait(self, waiting: _Waiting, from_us: int | None) -> None:
        if from_us is not None:
            waiting.due_us = from_us + suspend_ms(waiting.row, self.config.suspend_ms) * MS
            waiting.lock = self.locks.get(waiting.row.client_id or "")

    def _granted(self, row: Row) -> None:
        self.locks[row.client_id or ""] = row
        for waiting in self.waiting.values():
            in_time = (
                waiting.due_us is not None
                and row.ended_us is not None
                and row.ended_us <= waiting.due_us - MS
            )
            if in_time and waiting.row.client_id == row.client_id:
                waiting.lock = row


def _tells(waiting: _Waiting, row: Row) -> bool:
    """Does this tell whether the batch came in time? Not where its dead letter may have been taken, until that message
    comes again."""
    letter = waiting.dead_letter
    if letter is None or letter.outcome is Outcome.REFUSED:
        return True
    return row.kind is Kind.DELIVER and row.queue_offset == letter.queue_offset


judge = LaneJudge


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
