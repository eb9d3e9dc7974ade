"""A lane whose owner died is taken over by the survivor to whom it is assigned, in a bounded time.

The time runs from the last of: the owner's death, the survivor's assignment (so the removal of the dead member is
over by then), and the last disturbance of the run. It is as long as the broker keeps a lease, one rebalance, the
time that a request may take, and a timer's slack. "Taken over" means added, under a new grant; that its messages are
then delivered is a matter of progress, and of the start. A disturbance is whatever can hold a survivor up for a
while: a client that joins, leaves, dies or stands still, a fault, a wall-clock step, a request of its own for a lease
or a stored offset, or anybody's for this lease, that was not answered, or answered with an error. While one lasts
nothing is owed: neither while such a request is under way, nor after one of which nobody saw the end, unless who made
it has died since. That it asks who the members are, and which queues there are, is taken to be answered: no clause
sees it. Silent after a death of a broker, by its crash or by a later epoch (nothing says since when it is back), where
somebody else was granted the lane meanwhile (whose lease lives, whatever is assigned to whom since), and where the
survivor has worked on the lane before (a call of that time may still run, and it waits for it). A lane that its owner
began to give back has no owner, dead or alive.
Rooted in rows of the survivor at both ends: its assignment, and a request that shows that it is still at work. That
nobody has joined, and that nobody else holds the lease, is known in a closed world only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.grants import refuses
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import BROKER_LIVES, NO_WALL_CLOCK_STEP, ORDERLY, Premise
from specs.clauses.rows import over_us
from specs.clauses.words import MS, at, ms
from specs.history.row import Row
from specs.plan.traits import Stake, Trait
from specs.vocabulary import Key, Kind, Lane, Outcome, Party

DISTURBS = frozenset({Kind.CRASH, Kind.FAULT, Kind.JOIN, Kind.LEAVE, Kind.PAUSE})

ID = "LSE-5"
TITLE = "a dead owner's lane is taken over"
STATEMENT = (
    "The lane of a client that died is taken over by the survivor to whom it is assigned, within the broker's limit "
    "and one rebalance."
)
PARTY = Party.PAIR
KEY = Key.RUN
PREMISE = (
    ORDERLY,
    NO_WALL_CLOCK_STEP,
    BROKER_LIVES,
    Premise(
        "calm",
        "nobody joins, leaves, dies or stands still, no fault lasts, and the survivor's requests are answered",
        told_by=DISTURBS,
    ),
)
SOURCES = (
    "docs/sources.md#client-leases",
    "docs/sources.md#lock-table",
    "docs/sources.md#membership",
)
STAKES = (Stake(Trait.DEATH, brings=4),)
KINDS = frozenset(
    {
        Kind.LOCK,
        Kind.UNLOCK,
        Kind.ADD,
        Kind.ASSIGN,
        Kind.FETCH_OFFSET,
        Kind.CRASH,
        Kind.FAULT,
        Kind.JOIN,
        Kind.LEAVE,
        Kind.PAUSE,
    }
)
SETTINGS = ("broker_lease_ms", "rebalance_ms")
CONCLUDES_FROM_ABSENCE = True
NEEDS = frozenset({Kind.ASSIGN, Kind.CRASH, Kind.LOCK})


@dataclass(frozen=True, slots=True)
class NotTakenOver(Finding):
    """grant: the dead client's. later: what shows the survivor at work, too late for the lane."""

    grant: Row
    crash: Row
    assignment: Row
    later: Row
    lane: str


class RunJudge(Judge):
    """Remembers the last grant of each lane and who added it, the present assignments, and the orphaned lanes."""

    __slots__ = (
        "adders",
        "asking",
        "assigned",
        "bound_us",
        "calm_us",
        "grants",
        "lasting",
        "orphans",
        "silent_us",
    )

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        config = self.config
        times = (
            config.broker_lease_ms,
            config.rebalance_ms,
            config.delay_bound_ms,
            config.schedule_slack_ms,
        )
        self.bound_us = sum(times) * MS
        self.grants: dict[Lane, Row] = {}
        self.adders: dict[Lane, set[str]] = {}
        self.assigned: dict[tuple[str, str, str], Row] = {}  # by group, client and topic
        self.orphans: dict[Lane, tuple[Row, Row]] = {}  # with the dead owner's grant, and its crash
        self.calm_us = 0
        # By client, and by lane: when a request was not answered, and those that are under way.
        self.silent_us: dict[str | Lane, int] = {}
        self.asking: dict[str | Lane, set[int]] = {}
        self.lasting = 0  # disturbances that have begun and not ended

    def begins(self, row: Row) -> Iterable[Finding]:
        if self.context.broker_died:
            self.orphans.clear()
        if row.kind in DISTURBS:
            self._disturbed(row)
            return NOTHING
        client = row.client_id
        if client is None:
            return NOTHING
        if row.kind is Kind.ASSIGN:
            self.assigned[row.group or "", client, row.topic or ""] = row
        elif row.kind is Kind.ADD and row.queue_id is not None:
            lane = row.lane
            self.adders.setdefault(lane, set()).add(client)
            orphan = self.orphans.pop(lane, None)
            if orphan is not None and orphan[0].client_id != client:
                self.opportunities += 1
        elif row.kind is Kind.UNLOCK and row.queue_id is not None:
            grant = self.grants.get(row.lane)
            if grant is not None and grant.client_id == client:
                del self.grants[row.lane]
                self.orphans.pop(row.lane, None)
        elif row.kind in (Kind.LOCK, Kind.FETCH_OFFSET):
            at_work = row.kind is Kind.LOCK and self.orphans and not self.lasting
            found = self._at_work(row) if at_work and client not in self.asking else NOTHING
            if row.seq_end is None or row.seq_end > row.seq_begin:
                for each in self._concerned(row):
                    self.asking.setdefault(each, set()).add(row.seq_begin)
            return found
        return NOTHING

    def _disturbed(self, row: Row) -> None:
        self.calm_us = max(self.calm_us, row.started_us)
        if row.seq_end is None or row.seq_end > row.seq_begin:
            self.lasting += 1
        client = row.client_id
        if row.kind is Kind.CRASH and client is not None and not self.context.broker_died:
            for lane, grant in self.grants.items():
                if grant.client_id == client:
                    self.orphans[lane] = (grant, row)
        if row.kind is Kind.CRASH and client is not None:
            for seq in tuple(self.asking.get(client, ())):
                self._asked(seq, tuple(self.asking))
        if row.kind in (Kind.CRASH, Kind.LEAVE):
            for key in [
                key for key in self.assigned if key[1] == client and row.group in (None, key[0])
            ]:
                del self.assigned[key]

    def _at_work(self, row: Row) -> Iterable[Finding]:
        found: list[Finding] = []
        for lane, (grant, crash) in list(self.orphans.items()):
            assignment = self._assignment(row.client_id, lane)
            if assignment is None or lane in self.asking:
                continue
            if self._is_of_another(lane, row.client_id):
                continue
            silent_us = max(self.silent_us.get(row.client_id or "", 0), self.silent_us.get(lane, 0))
            since = max(self.calm_us, silent_us, crash.started_us, assignment.started_us)
            if row.started_us - since - self.context.info.clock_bound_us <= self.bound_us:
                continue
            del self.orphans[lane]
            if row.client_id not in self.adders.get(lane, ()):
                self.opportunities += 1
                found.append(NotTakenOver(grant, crash, assignment, row, str(lane)))
        return found

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.kind in DISTURBS:
            if row.seq_end is not None and row.seq_end > row.seq_begin:
                self.lasting -= 1
                self.calm_us = max(self.calm_us, over_us(row))
            return NOTHING
        self._asked(row.seq_begin, self._concerned(row))
        if row.kind is Kind.LOCK:
            if row.outcome is Outcome.OK:
                self._granted(row)
            elif not refuses(row):
                self._unanswered(row)
        elif row.kind is Kind.FETCH_OFFSET:
            missing = row.outcome is Outcome.REFUSED and row.value == -1
            if row.outcome is not Outcome.OK and not missing:
                self._unanswered(row)
        return NOTHING

    def _concerned(self, row: Row) -> tuple[str | Lane, ...]:
        """Whom a request holds up: who asked; and somebody may be granted what it asked for."""
        client = row.client_id or ""
        is_of_a_lane = row.kind is Kind.LOCK and row.queue_id is not None
        return (client, row.lane) if is_of_a_lane else (client,)

    def _asked(self, seq: int, concerned: tuple[str | Lane, ...]) -> None:
        """The request is not under way any more."""
        for each in concerned:
            if each in self.asking:
                self.asking[each].discard(seq)
                if not self.asking[each]:
                    del self.asking[each]

    def _unanswered(self, row: Row) -> None:
        us = over_us(row)
        for each in self._concerned(row):
            self.silent_us[each] = max(us, self.silent_us.get(each, us))

    def _granted(self, row: Row) -> None:
        if row.queue_id is None or row.client_id is None:
            return
        lane = row.lane
        if lane in self.orphans and (
            self._is_of_another(lane, row.client_id)
            or self._assignment(row.client_id, lane) is None
        ):
            del self.orphans[lane]
        self.grants[lane] = row

    def _is_of_another(self, lane: Lane, client: str | None) -> bool:
        """Was the orphaned lane granted to another client since its owner died?"""
        latest = self.grants[lane]
        return latest is not self.orphans[lane][0] and latest.client_id != client

    def _assignment(self, client: str | None, lane: Lane) -> Row | None:
        """The client's present assignment, if it holds the lane. One that names no topic may be of any."""
        share = f"{lane.broker}/{lane.queue_id}"
        for topic in (lane.topic, ""):
            assignment = self.assigned.get((lane.group, client or "", topic))
            if assignment is not None and share in (assignment.detail or "").split():
                return assignment
        return None


judge = RunJudge


def explain(found: NotTakenOver) -> str:
    crash, assignment, later = found.crash, found.assignment, found.later
    since = ms(later.started_us - max(crash.started_us, assignment.started_us))
    return (
        f"{later.client_id}, to whom {found.lane} is assigned, was at work at {at(later)} and had not added it; its "
        f"owner {found.grant.client_id} had died at {at(crash)}, and {since} had passed since then and the assignment"
    )
