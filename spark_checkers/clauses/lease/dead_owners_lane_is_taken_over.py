"""LSE-5 over columns: of a whole run only leases, assignments and disturbances matter, and they are few."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from spark_checkers import planting
from spark_checkers.planting import ANOTHER, STRANGER, Changes, Mutant, Planted, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.grants import refuses
from specs.facts.lanes import BEGIN, END, OP_COLUMNS, Digest, Op
from specs.facts.rows import Rows
from specs.facts.run_context import RunContext
from specs.facts.segments import MS, NEVER, NO_TEXT, NONE
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome

_DISTURBS = (Kind.CRASH, Kind.FAULT, Kind.JOIN, Kind.LEAVE, Kind.PAUSE)
_KINDS = (Kind.LOCK, Kind.UNLOCK, Kind.ADD, Kind.ASSIGN, Kind.FETCH_OFFSET, *_DISTURBS)
Place = tuple[str, str, str, int]
"""Group, topic, broker, queue."""


class Run:
    """What one run has come to so far."""

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
        self.owners: dict[Place, Op] = {}
        self.takers: dict[Place, int] = {}  # of orphans: who was granted it since
        self.workers: set[tuple[Place, int]] = set()
        self.shares: dict[tuple[str, int, str], tuple[Op, set[str]]] = {}
        self.orphans: dict[Place, tuple[Op, Op]] = {}
        self.calm_us = self.lasting = self.stakes = 0
        # By client: the last request of its own that came to nothing.
        self.waited_us: dict[int, int] = {}
        # When the lease may have been given, nobody knows to whom.
        self.doubted_us: dict[Place, int] = {}
        # Requests that are under way, of clients that live: whose, and for which lease. By their places.
        self.under_way: dict[int, tuple[int, Place | None]] = {}
        deaths = {*context.broker_died, *context.epochs}
        self.broker_lives_until = min(
            (seq for broker in deaths for seq in context.deaths_of(broker)), default=NEVER
        )

    def _word(self, name: str, place: int) -> str:
        code = int(self.rows.text(name)[place])
        return "" if code == NO_TEXT else self.rows.words(name)[code]

    def _lane(self, op: Op) -> Place | None:
        queue = int(self.rows.number("queue_id")[op.place])
        if queue == NONE:
            return None
        return (
            self._word("group", op.place),
            self._word("topic", op.place),
            self._word("broker", op.place),
            queue,
        )

    def _leased(self, op: Op) -> Place | None:
        """The lane of which it asks for the lease."""
        return self._lane(op) if op.kind is Kind.LOCK else None

    def begins(self, op: Op) -> None:
        if op.kind in _DISTURBS:
            self._disturbed(op)
        elif op.client == NO_TEXT:
            return
        elif op.kind is Kind.ASSIGN:
            group, topic = self._word("group", op.place), self._word("topic", op.place)
            self.shares[group, op.client, topic] = (op, set(self._word("detail", op.place).split()))
        elif op.kind is Kind.ADD:
            lane = self._lane(op)
            if lane is not None:
                self.workers.add((lane, op.client))
                orphan = self.orphans.pop(lane, None)
                self.stakes += orphan is not None and orphan[0].client != op.client
        elif op.kind is Kind.UNLOCK:
            lane = self._lane(op)
            if lane in self.owners and self.owners[lane].client == op.client:
                del self.owners[lane]
                self.orphans.pop(lane, None)
        else:
            if op.kind is Kind.LOCK and self.orphans and not self.lasting:
                self._at_work(op)
            if op.end > op.begin:
                self.under_way[op.place] = (op.client, self._leased(op))

    def _disturbed(self, op: Op) -> None:
        self.calm_us = max(self.calm_us, op.started)
        self.lasting += op.end > op.begin
        if op.kind is Kind.CRASH and op.client != NO_TEXT and op.begin < self.broker_lives_until:
            hers = {lane: own for lane, own in self.owners.items() if own.client == op.client}
            for lane, own in hers.items():
                self.orphans[lane] = own, op
                self.takers.pop(lane, None)
        if op.kind in (Kind.CRASH, Kind.LEAVE):
            if op.kind is Kind.CRASH:
                self.under_way = {
                    place: asked for place, asked in self.under_way.items() if asked[0] != op.client
                }
            left = self._word("group", op.place)
            kept = [key for key in self.shares if key[1] != op.client or (left and key[0] != left)]
            self.shares = {key: self.shares[key] for key in kept}

    def _at_work(self, op: Op) -> None:
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
                self.findings.violation([own.place, crash.place, share.place, op.place])

    def ends(self, op: Op) -> None:
        if op.kind in _DISTURBS:
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

    def _share(self, client: int, lane: Place) -> Op | None:
        """The client's assignment that holds the lane; one that names no topic may be of any."""
        group, topic, broker, queue = lane
        for name in (topic, ""):
            share, places = self.shares.get((group, client, name), (None, set[str]()))
            if share is not None and f"{broker}/{queue}" in places:
                return share
        return None


def kernel(rows: Rows, findings: Findings) -> None:
    """One pass over the few rows of each run in which anybody died."""
    if not rows.are(Kind.CRASH).any():
        return
    where = rows.of(*_KINDS)
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
        row[order],
        strict=True,
    )
    ops = {op.place: op for op in rows.shared(Digest).ops(where)}
    for run, what, now, place in events:
        state = runs.get(run)
        if state is None:
            state = runs[run] = Run(rows, rows.context_of(int(place)), findings)
            first[run] = int(place)
        if now >= state.context.clock_stepped:
            continue
        if now >= state.broker_lives_until:
            state.orphans.clear()
        op = ops[int(place)]
        if what == BEGIN:
            state.begins(op)
        else:
            state.ends(op)
    for run, state in runs.items():
        if state.stakes:
            findings.at_stake_times(first[run], int(state.stakes))


TWIN = Twin("LSE-5", (*OP_COLUMNS, "detail"), kernel)
find = TWIN.find


# ---- what breaks the clause, planted


def orphan_forgotten(trace: Trace) -> Changes:
    for lock in trace.of(Kind.LOCK):
        if lock.outcome is Outcome.OK and lock.queue_id is not None:
            yield partial(_orphaned, trace, lock)


def _orphaned(trace: Trace, lock: Row) -> Planted:
    """After everything else, a stranger is granted a lane and dies; the one to whom it is assigned never adds it."""
    config = trace.info.config
    times = (
        config.broker_lease_ms,
        config.rebalance_ms,
        config.delay_bound_ms,
        config.schedule_slack_ms,
    )
    last = max(trace.rows, key=lambda row: max(row.seq_begin, row.seq_end or 0))
    granted = planting.elsewhere(trace, lock, last, STRANGER, Outcome.OK)
    end = max(granted.started_us, *(max(row.started_us, row.ended_us or 0) for row in trace.rows))
    bare = granted._replace(queue_id=None, broker=None)
    share = f"{lock.broker}/{lock.queue_id}"
    made = (
        (0, granted),
        (1, bare._replace(kind=Kind.CRASH, group=None, topic=None)),
        (2, bare._replace(kind=Kind.ASSIGN, client_id=ANOTHER, detail=share)),
        (
            sum(times) * MS + 3,
            granted._replace(client_id=ANOTHER, queue_id=(lock.queue_id or 0) + 1),
        ),
    )
    return trace.with_more(
        [
            row._replace(
                seq_begin=granted.seq_begin + 2 * step,
                seq_end=granted.seq_begin + 2 * step,
                op_id=granted.op_id + step,
                started_us=end + late_us,
                ended_us=end + late_us,
            )
            for step, (late_us, row) in enumerate(made)
        ]
    )


DEFECTS = (
    Mutant(
        "orphan-forgotten",
        "LSE-5",
        "a dead owner's lane is not taken over",
        orphan_forgotten,
        generated=False,
    ),
)
