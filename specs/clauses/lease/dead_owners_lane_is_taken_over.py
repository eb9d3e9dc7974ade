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

from dataclasses import dataclass
from typing import Any

import numpy as np

from specs.clauses.judging import Finding
from specs.clauses.premises import BROKER_LIVES, NO_WALL_CLOCK_STEP, ORDERLY, Premise
from specs.clauses.words import at, ms
from specs.facts.findings import Findings
from specs.facts.grants import refuses
from specs.facts.lanes import BEGIN, END, OP_COLUMNS, Digest, Op
from specs.facts.rows import Rows
from specs.facts.run_context import RunContext
from specs.facts.segments import MS, NEVER, NO_TEXT, NONE, ints
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
COLUMNS = (*OP_COLUMNS, "detail")


@dataclass(frozen=True, slots=True)
class NotTakenOver(Finding):
    """grant: the dead client's. later: what shows the survivor at work, too late for the lane."""

    grant: Row
    crash: Row
    assignment: Row
    later: Row
    lane: str


class Run:
    """What one run has come to so far.

    owners: the last grant of each lane. takers: of orphans, who was granted it since. workers: who added which lane.
    shares: the present assignments by group, client and topic, with the queues in them. orphans: with the dead owner's
    grant, and its crash. lasting: so many disturbances have begun and not ended.
    """

    def __init__(self, rows: Rows, context: RunContext, findings: Findings) -> None:
        self.rows, self.context, self.findings = rows, context, findings
        config = context.info.config
        times = (
            config.broker_lease_ms,
            config.rebalance_ms,
            config.delay_bound_ms,
            config.schedule_slack_ms,
        )
        self.bound_us = sum(times) * MS
        self.owners: dict[Lane, Op] = {}
        self.takers: dict[Lane, int] = {}
        self.workers: set[tuple[Lane, int]] = set()
        self.shares: dict[tuple[str, int, str], tuple[Op, set[str]]] = {}
        self.orphans: dict[Lane, tuple[Op, Op]] = {}
        self.calm_us = self.lasting = self.stakes = 0
        # By client: the last request of its own that came to nothing.
        self.waited_us: dict[int, int] = {}
        # When the lease may have been given, nobody knows to whom.
        self.doubted_us: dict[Lane, int] = {}
        # Requests that are under way, of clients that live: whose, and for which lease. By their places.
        self.under_way: dict[int, tuple[int, Lane | None]] = {}
        deaths = {*context.broker_died, *context.epochs}
        self.broker_lives_until = min(
            (seq for broker in deaths for seq in context.deaths_of(broker)), default=NEVER
        )

    def _lane(self, op: Op) -> Lane | None:
        queue = int(self.rows.number("queue_id")[op.place])
        if queue == NONE:
            return None
        text = self.rows.name_of
        return Lane(
            text("group", op.place), text("topic", op.place), text("broker", op.place), queue
        )

    def _leased(self, op: Op) -> Lane | None:
        """The lane of which it asks for the lease."""
        return self._lane(op) if op.kind is Kind.LOCK else None

    def begins(self, op: Op) -> None:
        if op.kind in DISTURBS:
            self._disturbed(op)
        elif op.client == NO_TEXT:
            return
        elif op.kind is Kind.ASSIGN:
            text = self.rows.name_of
            share = set(text("detail", op.place).split())
            self.shares[text("group", op.place), op.client, text("topic", op.place)] = op, share
        elif op.kind is Kind.ADD:
            self._adds(op)
        elif op.kind is Kind.UNLOCK:
            lane = self._lane(op)
            if lane is not None and lane in self.owners and self.owners[lane].client == op.client:
                del self.owners[lane]
                self.orphans.pop(lane, None)
        else:
            if op.kind is Kind.LOCK and self.orphans and not self.lasting:
                self._at_work(op)
            if op.end > op.begin:
                self.under_way[op.place] = (op.client, self._leased(op))

    def _adds(self, op: Op) -> None:
        lane = self._lane(op)
        if lane is not None:
            self.workers.add((lane, op.client))
            orphan = self.orphans.pop(lane, None)
            self.stakes += orphan is not None and orphan[0].client != op.client

    def _disturbed(self, op: Op) -> None:
        self.calm_us = max(self.calm_us, op.started)
        self.lasting += op.end > op.begin
        if op.kind is Kind.CRASH and op.client != NO_TEXT:
            self._dies(op)
        if op.kind in (Kind.CRASH, Kind.LEAVE):
            left = self.rows.name_of("group", op.place)
            kept = [key for key in self.shares if key[1] != op.client or (left and key[0] != left)]
            self.shares = {key: self.shares[key] for key in kept}

    def _dies(self, op: Op) -> None:
        """A client crashes: its lanes are orphans, and its requests are not under way any more."""
        if op.begin < self.broker_lives_until:
            hers = {lane: own for lane, own in self.owners.items() if own.client == op.client}
            for lane, own in hers.items():
                self.orphans[lane] = own, op
                self.takers.pop(lane, None)
        self.under_way = {
            place: asked for place, asked in self.under_way.items() if asked[0] != op.client
        }

    def _at_work(self, op: Op) -> None:
        """A request shows that its client is at work: is it long since any of the orphans was assigned to it?"""
        # What happened from then on is no longer ago than the bound.
        lately_us = op.started - self.context.info.clock_bound_us - self.bound_us
        if max(self.calm_us, self.waited_us.get(op.client, 0)) >= lately_us:
            return
        if any(client == op.client for client, _ in self.under_way.values()):
            return
        doubted = {lane for _, lane in self.under_way.values()}
        for lane, (own, crash) in list(self.orphans.items()):
            if lane in doubted or self.takers.get(lane, op.client) != op.client:
                continue
            if max(self.doubted_us.get(lane, 0), crash.started) >= lately_us:
                continue
            share = self._share(op.client, lane)
            if share is None or share.started >= lately_us:
                continue
            del self.orphans[lane]
            if (lane, op.client) not in self.workers:
                self.stakes += 1
                self.findings.broken(
                    NotTakenOver,
                    {"lane": str(lane)},
                    grant=ints([own.place]),
                    crash=ints([crash.place]),
                    assignment=ints([share.place]),
                    later=ints([op.place]),
                )

    def ends(self, op: Op) -> None:
        if op.kind in DISTURBS:
            if op.end > op.begin:
                self.lasting -= 1
                self.calm_us = max(self.calm_us, op.over_us)
            return
        self.under_way.pop(op.place, None)
        if op.kind is Kind.LOCK and op.outcome is Outcome.OK:
            self._granted(op)
        elif op.kind is Kind.LOCK and not refuses(op):
            self._in_vain(op)
        elif op.kind is Kind.FETCH_OFFSET:
            nothing_stored = op.outcome is Outcome.REFUSED and op.value == -1
            if op.outcome is not Outcome.OK and not nothing_stored:
                self._in_vain(op)

    def _in_vain(self, op: Op) -> None:
        """A request came to nothing. It holds up who asked; and somebody may be granted what it asked for."""
        until_us = op.over_us
        self.waited_us[op.client] = max(until_us, self.waited_us.get(op.client, 0))
        lane = self._leased(op)
        if lane is not None:
            self.doubted_us[lane] = max(until_us, self.doubted_us.get(lane, 0))

    def _granted(self, op: Op) -> None:
        lane = self._lane(op)
        if lane is None or op.client == NO_TEXT:
            return
        self.owners[lane] = op
        if lane in self.orphans:
            taker = self.takers.setdefault(lane, op.client)
            if taker != op.client or self._share(op.client, lane) is None:
                del self.orphans[lane]

    def _share(self, client: int, lane: Lane) -> Op | None:
        """The client's assignment that holds the lane; one that names no topic may be of any."""
        for topic in (lane.topic, ""):
            share, places = self.shares.get((lane.group, client, topic), (None, set[str]()))
            if share is not None and f"{lane.broker}/{lane.queue_id}" in places:
                return share
        return None


def judge(rows: Rows, findings: Findings) -> None:
    """One pass over the few rows of each run in which anybody died."""
    if not rows.are(Kind.CRASH).any():
        return
    where = rows.of(*KINDS)
    closed = where[rows.end[where] < NEVER]
    row = np.concatenate([where, closed])
    phase = np.concatenate([np.full(len(where), BEGIN), np.full(len(closed), END)])
    time = np.where(phase == BEGIN, rows.begin[row], rows.end[row])
    order = np.lexsort((phase, time, rows.run[row]))
    runs: dict[int, Run] = {}
    first: dict[int, int] = {}
    events: Any = zip(
        rows.run[row[order]].tolist(),
        phase[order].tolist(),
        time[order].tolist(),
        row[order].tolist(),
        strict=True,
    )
    ops = {op.place: op for op in rows.shared(Digest).ops(where)}
    for run, what, now, place in events:
        state = runs.get(run)
        if state is None:
            state = runs[run] = Run(rows, rows.context_of(place), findings)
            first[run] = place
        if now >= state.context.clock_stepped:
            continue
        if now >= state.broker_lives_until:
            state.orphans.clear()
        (state.begins if what == BEGIN else state.ends)(ops[place])
    for run, state in runs.items():
        findings.at_stake_times(first[run], int(state.stakes))


def explain(found: NotTakenOver) -> str:
    crash, assignment, later = found.crash, found.assignment, found.later
    since = ms(later.started_us - max(crash.started_us, assignment.started_us))
    return (
        f"{later.client_id}, to whom {found.lane} is assigned, was at work at {at(later)} and had not added it; its "
        f"owner {found.grant.client_id} had died at {at(crash)}, and {since} had passed since then and the assignment"
    )
