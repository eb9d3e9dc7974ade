"""What a client can do for a lane at once, it does: it adds what it was granted, pulls again, calls when all is there.

*Not called*: the lane's next message is fetched, the call before it ended SUCCESS or COMMIT, and the lease is fresh.
Then its call begins within the slack of a timer (`schedule_slack_ms`). When a lane is *ready* in this sense, and what
excuses it, is that of RTY-6, which asks why it waits; here it may be for nothing at all. The client has twice as many
threads as it ever added lanes, so that no lane waits for one.

*Not pulled*: after each answer to a pull, whether or not it brought messages, the incarnation's next pull begins within
the slack of a timer, under a fresh lease as above. That is judged while the client holds no more messages of the lane
than one pull may bring, so that none is too many for it, and where nobody joined, left, died or stood still, and no
fault lasted, since shortly before (the time that requests may take, and the slack): a client may have one thread that
asks for all its lanes, and wait there for a broker that is gone. Not of the first pull, which comes when the lane is
ready.

*Not added*: a client that was granted a lane which it never had before either adds it within the time that requests
may take and the slack, counted from the grant's answer, or gives it back. The grant stands if the client did not unlock
the lane, was not refused it, got no error or no answer for it, was not told an error when it asked where to start, and
nobody else was granted the lane since. Nothing is said where something stood in the way between the client and the
broker meanwhile, where one of them stood still, or where the broker or the client has died or the client was leaving.

One thread of a client may ask for all its lanes, and wait for each answer. So in both cases that time does not count
in which the client waited for the answer to a request for a lease or for an offset to start from, of whatever lane, or
for a pull that never got one, as long as requests may take. Nothing is found of a client that waits for such an answer
still.

Nothing is said of a client that adds, pulls or calls no more: what never comes is the business of LIV-1 and LIV-2.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding
from specs.clauses.premises import (
    BROKER_LIVES,
    BROKER_NOT_PAUSED,
    NO_FILTER,
    NO_RESET,
    NO_WALL_CLOCK_STEP,
    NOT_PAUSED,
    ORDERLY,
    Premise,
)
from specs.clauses.retry import other_lanes_go_on
from specs.clauses.retry.other_lanes_go_on import Lane, Place, _Lease
from specs.clauses.rows import may_be_manual, over_us
from specs.clauses.words import MS, at, ms, who
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "LIV-5"
TITLE = "a ready lane is worked on"
STATEMENT = (
    "Where nothing is in the way, a granted lane is added within the time of a request, a lane is pulled again after "
    "each answer, and its next message is given to the listener as soon as it is there, within the slack of a timer."
)
PARTY = Party.CLIENT
KEY = Key.GROUP
PREMISE = (
    ORDERLY,
    NO_WALL_CLOCK_STEP,
    NO_RESET,
    NOT_PAUSED,
    NO_FILTER,
    BROKER_LIVES,
    BROKER_NOT_PAUSED,
    Premise(
        "fresh lease", "a grant was answered before the lane was ready, and outlives the bound"
    ),
    Premise(
        "no wait of its own",
        "the consumer was told no interval between pulls (`pullInterval`), and nobody suspends it (`suspend()`); "
        "no row tells either",
    ),
    Premise("threads for all lanes", "the client has twice as many threads as it ever added lanes"),
    Premise(
        "nothing in the way",
        "no fault of the link between the client and the broker was recorded from the grant until the lane was added, "
        "and the client neither died nor left",
        told_by=frozenset({Kind.CRASH, Kind.FAULT, Kind.LEAVE}),
    ),
    Premise(
        "calm",
        "of a lane's next pull: nobody joined, left, died or stood still, and no fault lasted, since shortly before",
        told_by=frozenset({Kind.CRASH, Kind.FAULT, Kind.JOIN, Kind.LEAVE, Kind.PAUSE}),
    ),
)
SOURCES = ("docs/sources.md#orderly-loop", "docs/sources.md#client-leases")
KINDS = frozenset(
    {Kind.ADD, Kind.PULL, Kind.DELIVER, Kind.LOCK, Kind.UNLOCK, Kind.RESET, Kind.FETCH_OFFSET}
)
SETTINGS = (
    "batch",
    "client_lease_ms",
    "max_reconsume_times",
    "pull_batch",
    "suspend_ms",
    "threads",
)
NEEDS = frozenset({Kind.ADD, Kind.DELIVER, Kind.LOCK, Kind.PULL})
CONCLUDES_FROM_ABSENCE = True
LOOKS_BACK = True


NEVER_US = -1
"""When something disturbed the run (`Context.disturbed_us`), if nothing has."""
_ASKED = (Kind.LOCK, Kind.FETCH_OFFSET)
"""What a client asks for before it adds a lane."""


@dataclass(frozen=True, slots=True)
class NotCalled(Finding):
    """before: the lane's last call; None where the pull found it with nothing to do.

    renewal: of the lease; None where the grant alone outlives the bound.
    """

    add: Row
    lock: Row
    renewal: Row | None
    pull: Row
    before: Row | None
    late: Row
    ready_us: int


@dataclass(frozen=True, slots=True)
class NotPulled(Finding):
    """pull: the last one. renewal: of the lease; None where the grant alone outlives the bound. again: the next one."""

    add: Row
    lock: Row
    renewal: Row | None
    pull: Row
    again: Row


@dataclass(frozen=True, slots=True)
class NotAdded(Finding):
    """lock: the first grant of those that stand. add: when the client added the lane at last."""

    lock: Row
    add: Row


class _Waits:
    """How long, in all, a client has waited for answers that it can't go on without.

    unanswered: the last request that has no end.
    """

    __slots__ = ("sum_us", "unanswered", "until_us")

    def __init__(self) -> None:
        self.sum_us = 0
        self.until_us = 0
        self.unanswered: Row | None = None

    def take(self, row: Row, ended_us: int) -> None:
        self.sum_us += max(0, ended_us - max(row.started_us, self.until_us))
        self.until_us = max(self.until_us, ended_us)

    def by(self, at_us: int) -> int:
        """How long until that time, after which no request has begun."""
        return self.sum_us - max(0, self.until_us - at_us)


class _Pulls:
    """Of a lane's present life: its last pull, if it was answered and no other has begun, with the lease at its end.

    lowest: where the first pull of the life asked. manual: may more be held than the call that began last? waited_us:
    how long the client had waited for other answers by then.
    """

    __slots__ = ("last", "lease", "lowest", "manual", "waited_us")

    def __init__(self) -> None:
        self.last: Row | None = None
        self.lease: _Lease | None = None
        self.lowest: int | None = None
        self.manual = False
        self.waited_us = 0


class GroupJudge(other_lanes_go_on.GroupJudge):
    """Knows the lanes as RTY-6 does; remembers besides their last pulls, and grants of lanes that were not added."""

    __slots__ = ("bound_us", "pulls", "requests_us", "unused", "waited_us", "waits")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        config, clocks_us = self.config, context.info.clock_bound_us
        self.bound_us = (config.delay_bound_ms + config.schedule_slack_ms) * MS + clocks_us
        self.requests_us = config.delay_bound_ms * MS + clocks_us
        self.waits: dict[str, _Waits] = {}  # by client
        self.waited_us: dict[int, int] = {}  # by grant: how long its client had waited by its end
        self.unused: dict[
            Place, dict[str, Row]
        ] = {}  # by lane and client: the first grant that stands
        self.pulls: dict[Lane, _Pulls] = {}

    def begins(self, row: Row) -> Iterable[Finding]:
        found: list[Finding] = []
        self._asks(row)
        grant = None
        if row.kind in (Kind.UNLOCK, Kind.ADD):
            grant = self._unused(row).pop(row.client_id or "", None)
        if row.kind is Kind.ADD and grant is not None:
            found.extend(self._added(grant, row, self.waited_us.get(grant.seq_begin, 0)))
        found.extend(super().begins(row))
        self._forget(grant)
        lane = (row.client_id or "", _place(row))
        if row.kind is Kind.ADD and row.incarnation is not None:
            self.pulls[lane] = _Pulls()
        elif row.kind is Kind.PULL and row.incarnation is not None and row.queue_offset is not None:
            found.extend(self._pulls_again(lane, row))
        return found

    def _asks(self, row: Row) -> None:
        """Whoever asks for a lease, or where to start, may wait for the answer before anything else."""
        client = row.client_id or ""
        if row.kind in _ASKED and row.ended_us is None:
            self.waits.setdefault(client, _Waits()).unanswered = row
        elif row.kind in _ASKED and row.ended_us is not None:
            self.waits.setdefault(client, _Waits()).take(row, row.ended_us)
        elif row.kind is Kind.PULL and row.outcome is Outcome.UNKNOWN and row.ended_us is not None:
            until_us = min(row.ended_us, row.started_us + self.requests_us)
            self.waits.setdefault(client, _Waits()).take(row, until_us)

    def _waited_by(self, client: str, at_us: int) -> int:
        waits = self.waits.get(client)
        return 0 if waits is None else waits.by(at_us)

    def _waits_still(self, client: str, group: str | None) -> bool:
        waits = self.waits.get(client)
        row = None if waits is None else waits.unanswered
        return row is not None and not self.context.is_of_an_old_life(client, group, row)

    def _forget(self, grant: Row | None) -> None:
        if grant is not None:
            self.waited_us.pop(grant.seq_begin, None)

    def _pulls_again(self, lane: Lane, row: Row) -> Iterable[Finding]:
        pulls, life = self.pulls.get(lane), self._life(lane, row)
        if pulls is None:
            return NOTHING
        last, lease, pulls.last = pulls.last, pulls.lease, None
        if last is None or lease is None or life is None or last.ended_us is None:
            return NOTHING
        waited_us = self._waited_by(lane[0], row.started_us) - pulls.waited_us
        until_us = last.ended_us + self.slack_us + waited_us
        lock, renewal = lease.lock, lease.renewal
        needed_us = min(until_us, row.started_us) - self.lease_us
        if lock.started_us >= needed_us:
            renewal = None
        elif renewal is None or renewal.started_us < needed_us:
            return NOTHING
        if self.context.disturbed_us > max(NEVER_US, last.ended_us - self.bound_us):
            return NOTHING
        few = self._held(pulls, life.highest, last) <= self.config.pull_batch
        if not few or not self._was_there(lane, life.add, lock, last.ended_us):
            return NOTHING
        self.opportunities += 1
        if row.started_us <= until_us or self._waits_still(lane[0], row.group):
            return NOTHING
        return (NotPulled(life.add, lock, renewal, last, row),)

    def _held(self, pulls: _Pulls, highest: int, last: Row) -> int:
        """How many messages the client may hold at most: all that it pulled from those of its last call on."""
        lowest = pulls.lowest or 0
        if highest >= 0 and not pulls.manual:
            lowest = max(lowest, highest + 1 - self.config.batch)
        return (last.value or 0) - lowest

    def _was_there(self, lane: Lane, add: Row, lock: Row, since_us: int) -> bool:
        """Did the client live and keep the lease, and not stand still since then?"""
        context, client = self.context, lane[0]
        return not (
            self.lost.get(lane, -1) > lock.seq_begin
            or context.is_leaving(client, add.group)
            or context.client_died_since(client, add)
            or context.paused_since(client, since_us)
        )

    def ends(self, row: Row) -> Iterable[Finding]:
        client = row.client_id or ""
        if row.kind is Kind.LOCK and row.outcome is Outcome.OK:
            others = self._unused(row)
            mine = others.pop(client, row)
            for other in others.values():
                self._forget(other)
            if mine is row:
                self.waited_us[row.seq_begin] = self._waited_by(client, over_us(row))
            self.unused[_place(row)] = {client: mine}
        elif row.kind is Kind.LOCK or (row.kind is Kind.FETCH_OFFSET and _failed(row)):
            self._forget(self._unused(row).pop(client, None))
        if row.kind is Kind.FETCH_OFFSET:
            return NOTHING
        found = super().ends(row)
        lane = (client, _place(row))
        pulls = self.pulls.get(lane)
        if pulls is not None and row.incarnation is not None and row.queue_offset is not None:
            is_of_life = self._life(lane, row) is not None
            if row.kind is Kind.DELIVER:
                pulls.manual = pulls.manual or (is_of_life and may_be_manual(row))
            elif row.kind is Kind.PULL:
                answered = is_of_life and row.outcome is Outcome.OK and row.value is not None
                pulls.last, pulls.lease = (row, self._lease(lane)) if answered else (None, None)
                pulls.waited_us = self._waited_by(client, over_us(row))
                if answered and pulls.lowest is None:
                    pulls.lowest = row.queue_offset
        return found

    def _renewed(self, lane: Lane, row: Row) -> None:
        super()._renewed(lane, row)
        pulls = self.pulls.get(lane)
        lease = None if pulls is None or pulls.last is None else pulls.lease
        if lease is not None and over_us(row) <= lease.lock.started_us + self.lease_us:
            lease.renewal = row

    def _unused(self, row: Row) -> dict[str, Row]:
        return self.unused.get(_place(row), {})

    def _added(self, grant: Row, add: Row, waited_us: int) -> Iterable[Finding]:
        context, client = self.context, add.client_id or ""
        if add.incarnation is None or (client, _place(add)) in self.seen:
            return NOTHING
        if (
            context.is_of_an_old_life(client, add.group, grant)
            or context.is_leaving(client, add.group)
            or context.broker_died_since(add.broker, grant)
            or any(
                context.is_disturbed(grant._replace(kind=kind), add.started_us) for kind in _ASKED
            )
        ):
            return NOTHING
        self.opportunities += 1
        waited_us = self._waited_by(client, add.started_us) - waited_us
        idle_us = add.started_us - over_us(grant) - waited_us
        if idle_us <= self.bound_us or self._waits_still(client, add.group):
            return NOTHING
        return (NotAdded(grant, add),)

    def _judged(self, found: other_lanes_go_on.HeldBack) -> Iterable[Finding]:
        """RTY-6 has found a call of a lane that was ready, and says when."""
        late, lock, renewal, context = found.late, found.lock, found.renewal, self.context
        client = late.client_id or ""
        if not context.has_threads(client):
            return NOTHING
        until_us = found.ready_us + self.slack_us
        needed_us = min(until_us, late.started_us) - self.lease_us
        if lock.started_us >= needed_us:
            renewal = None
        elif renewal is None or renewal.started_us < needed_us:
            return NOTHING
        if not self._was_there((client, _place(late)), found.add, lock, found.ready_us):
            return NOTHING
        self.opportunities += 1
        if late.started_us <= until_us:
            return NOTHING
        return (
            NotCalled(found.add, lock, renewal, found.pull, found.before, late, found.ready_us),
        )


def _place(row: Row) -> Place:
    return (row.topic, row.broker, row.queue_id)


def _failed(row: Row) -> bool:
    """Did the question where to start end otherwise than with an offset, or with the word that none is stored?"""
    return row.outcome is not Outcome.OK and not (
        row.outcome is Outcome.REFUSED and row.value == -1
    )


judge = GroupJudge


def explain(found: NotCalled | NotPulled | NotAdded) -> str:
    if isinstance(found, NotPulled):
        pull, again = found.pull, found.again
        ended_us = over_us(pull)
        return (
            f"{who(pull)} had its pull of {pull.lane} at offset {pull.queue_offset} answered at "
            f"{ended_us / 1_000_000:.3f} s and the lease since {at(found.lock)}, but pulled again only at {at(again)}, "
            f"{ms(again.started_us - ended_us)} later"
        )
    if isinstance(found, NotAdded):
        lock, add = found.lock, found.add
        return (
            f"{who(add)} was granted {add.lane} at {at(lock)} and did not give it back, but added it only "
            f"{ms(add.started_us - over_us(lock))} later, at {at(add)}"
        )
    late = found.late
    ready = f"{found.ready_us / 1_000_000:.3f} s"
    return (
        f"{who(late)} had offset {late.queue_offset} of {late.lane} ready at {ready}, the lease since {at(found.lock)} "
        f"and a thread, but delivered it only at {at(late)}, {ms(late.started_us - found.ready_us)} later"
    )
