"""While one lane of a client rests after a suspension, or its listener takes long, its other lanes go on.

A lane is *ready* when its next message was fetched and the call before it ended SUCCESS or COMMIT: from then on
nothing but the work of other lanes can hold it back. Refuted by its next call when that begins more than the bound
(`schedule_slack_ms`) late, and another lane of the client was busy all that time: with one call, or with the suspend
time that the call asked for. Where the other lane began later than this one was ready, the bound counts from there.

Claimed only where nothing else can have delayed the call. The incarnation was watched from its add, and it is the
same one that is called at last: a drop ends it. The message is the next one: behind that of the call before (and its
pull began before it), or else the first one of a pull that ended when the lane had nothing to do. A grant of the
lease was answered before the lane was ready, and it or one renewal of it outlives the bound; nothing was refused and
nothing given back since; and it was fresh when the last call ended, if there was one, since a lane that finds itself
without a lease asks again after seconds only. The client was not paused, did not die and is not shutting down. It has
twice as many threads as it ever added lanes, since a call of an earlier life of a lane may still keep one; for that
reason a first call is judged only in a lane's first life at this client. With fewer threads one must have been free: a
lane that waits out its suspend time keeps none. Then the bound counts from the end of the call that suspended the other
lane, if that was later; and since then fewer lanes than there are threads were at work, or may have been at giving up
what they had tried for the last time. Says nothing of a lane whose last call
asked for its messages again, or of a message that was delivered before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import (
    NO_FILTER,
    NO_RESET,
    NO_WALL_CLOCK_STEP,
    NOT_PAUSED,
    ORDERLY,
    Premise,
)
from specs.clauses.retry.no_redelivery_before_suspend import suspend_ms
from specs.clauses.rows import asks_again, ended_before, may_be_given_up, over_us
from specs.clauses.words import MS, at, ms, who
from specs.history.row import Row
from specs.plan.traits import Stake, Trait
from specs.vocabulary import LISTENER_SUSPENDS, Key, Kind, Outcome, Party

ID = "RTY-6"
TITLE = "other lanes go on"
STATEMENT = (
    "While one lane of a client is suspended or its listener takes long, the other lanes go on, as long as the client "
    "has threads for all of them; a lane that waits out its suspend time keeps no thread."
)
PARTY = Party.CLIENT
KEY = Key.GROUP
PREMISE = (
    ORDERLY,
    NO_WALL_CLOCK_STEP,
    NO_RESET,
    NOT_PAUSED,
    NO_FILTER,
    Premise(
        "fresh lease", "a grant was answered before the lane was ready, and outlives the bound"
    ),
    Premise(
        "a thread",
        "the client has twice as many threads as it ever added lanes, or the other lane waits out its suspend time and "
        "fewer lanes are at work meanwhile than there are threads",
    ),
)
SOURCES = ("docs/sources.md#orderly-loop",)
STAKES = (Stake(Trait.FRESH_LEASE),)
KINDS = frozenset({Kind.ADD, Kind.PULL, Kind.DELIVER, Kind.LOCK, Kind.UNLOCK, Kind.RESET})
SETTINGS = ("client_lease_ms", "max_reconsume_times", "suspend_ms", "threads")
NEEDS = frozenset({Kind.ADD, Kind.DELIVER, Kind.LOCK, Kind.PULL})
EXCUSED_BY = frozenset({Kind.LEAVE})


@dataclass(frozen=True, slots=True)
class HeldBack(Finding):
    """before: the lane's last call; None where the pull found it with nothing to do. busy: a call of another lane.

    renewal: of the lease; None where the grant alone outlives the bound.
    """

    add: Row
    lock: Row
    renewal: Row | None
    pull: Row
    before: Row | None
    busy: Row
    late: Row
    ready_us: int


Place = tuple[str | None, str | None, int | None]
"""Topic, broker, queue: of one group the lane."""
Lane = tuple[str, Place]
"""A lane at a client."""


class _Lease:
    """The grant that a lane had at some moment, and the last answered renewal of it that came before it ran out."""

    __slots__ = ("lock", "renewal")

    def __init__(self, lock: Row) -> None:
        self.lock = lock
        self.renewal: Row | None = None


class _Life:
    """A lane's present incarnation at a client: its pulls that hold messages not yet delivered, and its last call.

    pulls: each with the lane's grant at its end. first: is it the lane's first life at this client? lease: the grant
    at the end of the last call, None if it was not fresh then.
    """

    __slots__ = ("add", "first", "highest", "last", "lease", "pulls")

    def __init__(self, add: Row, first: bool) -> None:
        self.add = add
        self.first = first
        self.pulls: deque[tuple[Row, _Lease | None]] = deque()
        self.last: Row | None = None
        self.lease: _Lease | None = None
        self.highest = -1


class _Work:
    """What a lane did at a client: its last call, when it was over, and the last one after which it may give up."""

    __slots__ = ("ended_us", "op", "unsure")

    def __init__(self) -> None:
        self.op = -1
        self.ended_us = -1
        self.unsure = -2


class GroupJudge(Judge):
    """Remembers each client's lanes, their grants, and the calls that keep or kept a lane for longer than the bound."""

    __slots__ = (
        "at_work",
        "granted",
        "lease_us",
        "lives",
        "lost",
        "open",
        "rests",
        "seen",
        "slack_us",
        "worked",
    )

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.slack_us = self.config.schedule_slack_ms * MS
        self.lease_us = self.config.client_lease_ms * MS
        self.lives: dict[Lane, _Life] = {}
        self.seen: set[Lane] = set()  # every one that was ever added
        self.granted: dict[Lane, Row] = {}
        self.lost: dict[
            Lane, int
        ] = {}  # where in the history a lease was last refused or given back
        self.open: dict[str, dict[int, Row]] = {}  # by client: what runs
        self.rests: dict[
            str, dict[Place, Row]
        ] = {}  # by client and lane: the long call that is over last
        self.at_work: dict[
            str, dict[int, Place]
        ] = {}  # by client: the lanes of what runs, whatever was reset
        self.worked: dict[str, dict[Place, _Work]] = {}  # by client and lane: what is over

    # ------------------------------------------------------------ begins

    def begins(self, row: Row) -> Iterable[Finding]:
        lane = (row.client_id or "", _place(row))
        match row.kind:
            case Kind.RESET:
                for known in (self.lives, self.open, self.rests):
                    known.clear()
            case Kind.UNLOCK:
                self.lost[lane] = row.seq_begin
            case Kind.ADD if row.incarnation is not None:
                self.lives[lane] = _Life(row, lane not in self.seen)
                self.seen.add(lane)
            case Kind.DELIVER if row.incarnation is not None and row.queue_offset is not None:
                return self._delivers(lane, row, row.queue_offset)
            case _:
                pass
        return NOTHING

    def _delivers(self, lane: Lane, row: Row, offset: int) -> Iterable[Finding]:
        found: Iterable[Finding] = NOTHING
        life = self._life(lane, row)
        if life is not None:
            if life.last is None or life.last.op_id != row.op_id:
                found = self._called(life, row, offset)
            life.last, life.lease = row, None
            life.highest = max(life.highest, offset)
            while life.pulls and (life.pulls[0][0].value or 0) <= life.highest + 1:
                life.pulls.popleft()
        self.open.setdefault(lane[0], {})[row.seq_begin] = row
        self.at_work.setdefault(lane[0], {})[row.seq_begin] = lane[1]
        return found

    def _life(self, lane: Lane, row: Row) -> _Life | None:
        """The lane's life at the client, if the row belongs to it."""
        life = self.lives.get(lane)
        return life if life is not None and life.add.incarnation == row.incarnation else None

    def _called(self, life: _Life, row: Row, offset: int) -> Iterable[Finding]:
        """The next call of a lane begins."""
        before = life.last
        pull, lease = next((each for each in life.pulls if _holds(each[0], offset)), (None, None))
        if pull is None or offset <= life.highest:
            return NOTHING
        ready_us = over_us(pull)
        if before is None:
            if not life.first or pull.queue_offset != offset:
                return NOTHING
        else:
            goes_on = before.outcome in (Outcome.SUCCESS, Outcome.COMMIT) and ended_before(
                before, row
            )
            ended_us = before.ended_us
            if not goes_on or ended_us is None or life.lease is None:
                return NOTHING
            if pull.queue_offset == offset:
                if (pull.seq_end or 0) < (before.seq_end or 0):
                    return NOTHING  # it was fetched while the call ran
                before = None
            elif before.queue_offset != offset - 1:
                return NOTHING
            else:
                ready_us, lease = max(ready_us, ended_us), life.lease
        if lease is None:
            return NOTHING
        return self._judged(
            HeldBack(life.add, lease.lock, lease.renewal, pull, before, row, row, ready_us)
        )

    def _judged(self, found: HeldBack) -> Iterable[Finding]:
        """found: all but the busy lane is known."""
        late, lock, renewal, context = found.late, found.lock, found.renewal, self.context
        client = late.client_id or ""
        busy = self._busy(found)
        if busy is None:
            return NOTHING
        until_us = max(found.ready_us, busy.started_us) + self.slack_us
        if not context.has_threads(client):
            from_us = max(found.ready_us, over_us(busy))
            until_us = from_us + self.slack_us
            rests = busy.seq_end is not None and busy.seq_end < late.seq_begin and asks_again(busy)
            if (
                not rests
                or self.free_us(busy) <= until_us
                or not self._has_a_thread(client, from_us)
            ):
                return NOTHING
        needed_us = min(until_us, late.started_us) - self.lease_us
        if lock.started_us >= needed_us:
            renewal = None
        elif renewal is None or renewal.started_us < needed_us:
            return NOTHING
        if (
            self.lost.get((client, _place(late)), -1) > lock.seq_begin
            or context.is_leaving(client, found.pull.group)
            or context.client_died_since(client, found.add)
            or context.paused_since(client, found.ready_us)
        ):
            return NOTHING
        self.opportunities += 1
        if late.started_us <= until_us:
            return NOTHING
        return (
            HeldBack(
                found.add, lock, renewal, found.pull, found.before, busy, late, found.ready_us
            ),
        )

    def _has_a_thread(self, client: str, from_us: int) -> bool:
        """Were fewer lanes at work since then than the client has threads?"""
        lanes = set(self.at_work.get(client, {}).values())
        for place, work in self.worked.get(client, {}).items():
            if work.ended_us > from_us or work.op == work.unsure:
                lanes.add(place)
        return len(lanes) < self.config.threads

    def _busy(self, found: HeldBack) -> Row | None:
        """A call of another lane that kept it busy for longer than the bound after this one was ready."""
        late, client = found.late, found.late.client_id
        until_us = found.ready_us + self.slack_us
        rests = [each for each in self._others(self.rests.get(client or "", {}).values(), late)]
        longest = max(rests, key=self._longer, default=None)
        if longest is not None and self.free_us(longest) > until_us:
            return longest
        if late.started_us <= until_us:
            return None
        running = self._others(self.open.get(client or "", {}).values(), late)
        return next(
            (row for row in running if row.started_us + self.slack_us < late.started_us), None
        )

    def _others(self, rows: Iterable[Row], late: Row) -> Iterator[Row]:
        place, context = _place(late), self.context
        return (
            row
            for row in rows
            if _place(row) != place and not context.client_died_since(row.client_id, row)
        )

    def free_us(self, row: Row) -> int:
        """Until when an ended call keeps its lane, the suspend time included."""
        ended_us = over_us(row)
        if not asks_again(row) or (
            row.outcome in LISTENER_SUSPENDS and may_be_given_up(row, self.config)
        ):
            return ended_us
        return ended_us + suspend_ms(row, self.config.suspend_ms) * MS

    # ------------------------------------------------------------ ends

    def ends(self, row: Row) -> Iterable[Finding]:
        lane = (row.client_id or "", _place(row))
        if row.kind is Kind.LOCK:
            if row.outcome is Outcome.OK:
                self.granted[lane] = row
                self._renewed(lane, row)
            elif row.outcome is Outcome.REFUSED:
                self.lost[lane] = row.seq_end or 0
            return NOTHING
        if row.incarnation is None or row.queue_offset is None:
            return NOTHING
        life = self._life(lane, row)
        if row.kind is Kind.DELIVER:
            self._worked(lane, row)
            self._ended(lane, row)
            if life is not None and life.last is row:
                lease = self._lease(lane)
                is_fresh = (
                    lease is not None and over_us(row) <= lease.lock.started_us + self.lease_us
                )
                life.lease = lease if is_fresh else None
        elif life is not None and row.outcome is Outcome.OK:
            is_new = (row.value or 0) > max(row.queue_offset, life.highest + 1)
            if row.kind is Kind.PULL and is_new:
                life.pulls.append((row, self._lease(lane)))
        return NOTHING

    def _lease(self, lane: Lane) -> _Lease | None:
        """The lane's last grant, unless it was refused or given back since."""
        lock = self.granted.get(lane)
        return None if lock is None or self.lost.get(lane, -1) > lock.seq_begin else _Lease(lock)

    def _renewed(self, lane: Lane, row: Row) -> None:
        life = self.lives.get(lane)
        if life is not None:
            for lease in (life.lease, *(each for _, each in life.pulls)):
                if lease is not None and over_us(row) <= lease.lock.started_us + self.lease_us:
                    lease.renewal = row

    def _worked(self, lane: Lane, row: Row) -> None:
        client, place = lane
        self.at_work.get(client, {}).pop(row.seq_begin, None)
        work = self.worked.setdefault(client, {}).setdefault(place, _Work())
        work.op = row.op_id
        work.ended_us = max(work.ended_us, over_us(row))
        if row.outcome in LISTENER_SUSPENDS and may_be_given_up(row, self.config):
            work.unsure = row.op_id

    def _ended(self, lane: Lane, row: Row) -> None:
        client, place = lane
        died = self.context.client_died_since
        if self.open.get(client, {}).pop(row.seq_begin, None) is None or died(client, row):
            return
        if self.free_us(row) <= row.started_us + self.slack_us:
            return
        rests = self.rests.setdefault(client, {})
        before = rests.get(place)
        if before is None or died(client, before) or self._longer(row) > self._longer(before):
            rests[place] = row

    def _longer(self, row: Row) -> tuple[int, int]:
        """By what the call is chosen that kept its lane longest: of equal ones the first."""
        return (self.free_us(row), -row.seq_begin)


def _place(row: Row) -> Place:
    return (row.topic, row.broker, row.queue_id)


def _holds(pull: Row, offset: int) -> bool:
    """Did the pull fetch this message?"""
    return pull.queue_offset is not None and pull.queue_offset <= offset < (pull.value or 0)


judge = GroupJudge


def explain(found: HeldBack) -> str:
    late, busy = found.late, found.busy
    ready = f"{found.ready_us / 1_000_000:.3f} s"
    how = "rested" if asks_again(busy) else "was at work"
    waited = ms(late.started_us - found.ready_us)
    return (
        f"{who(late)} had offset {late.queue_offset} of {late.lane} ready at {ready} and the lease since "
        f"{at(found.lock)}, but delivered it only at {at(late)}, {waited} later, while {busy.lane} {how} from "
        f"{at(busy)} on ({busy.outcome})"
    )
