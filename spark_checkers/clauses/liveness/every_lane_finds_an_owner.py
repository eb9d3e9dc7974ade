"""LIV-2 over columns: a settled reading asks the lane's progress, and the run who of the group lives; an ADD asks
how long the lane had been without an owner. Queues of which a group has no row at all are asked for apart."""

from __future__ import annotations

from functools import partial

import numpy as np

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.clauses.rows import is_copy_topic
from specs.facts.findings import Findings
from specs.facts.lanes import LaneItems, Op
from specs.facts.progress import Incarnation
from specs.facts.rows import Rows
from specs.facts.segments import MS, NEVER, NO_TEXT, NONE
from specs.facts.settled import COLUMNS, Settled, places, readings, settled_kernel
from specs.vocabulary import Kind, Outcome


class Lane(Settled):
    """At stake where the lane had to find another owner, now or before, and the group lives."""

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        config = self.config
        gone_ms = max(config.broker_lease_ms, config.forgotten_ms)
        taken_ms = (
            config.rebalance_ms
            + config.lock_interval_ms
            + config.delay_bound_ms
            + config.schedule_slack_ms
        )
        self.strangers_us = (
            -1
        )  # when the lease was last given, perhaps, to a client outside the group
        self.bound_us = (gone_ms + taken_ms) * MS + self.context.info.clock_bound_us

    def begins(self, op: Op) -> None:
        if op.kind is not Kind.LOCK:
            super().begins(op)
        elif op.outcome is not Outcome.REFUSED:
            joined = self.context.member_since(self.lane.group, self.lane.name(op.client), op.begin)
            if joined is None:
                self.strangers_us = max(self.strangers_us, op.over_us)

    def ends(self, op: Op) -> None:
        if op.kind is not Kind.LOCK:
            super().ends(op)

    def _member(self) -> int | None:
        """The seq at which the living member of the group that started last joined."""
        rows = self.lane.digest.rows
        group = int(rows.group[self.lane.place])
        return (
            self.context.newest_member(rows.words("group")[group], self.now) if group >= 0 else None
        )

    def _end_of(self, last: Incarnation) -> tuple[int, int, list[int]] | None:
        """Why the incarnation is over, if it is: its seq, when that was, and its place if it is a row of the lane."""
        if last.dropped is not None:
            return last.dropped.begin, last.dropped.over_us, [last.dropped.place]
        if last.add is None:
            return None
        client = self.lane.name(last.add.client)
        if self.has_died(last):
            seq = self.context.latest(client, Kind.CRASH, self.now)
            return None if seq is None else (seq, self.context.died_us.get(seq, NEVER), [])
        leave = self.context.leave_at(client, self.lane.group, self.now)
        if leave is None:
            return None
        return leave.seq_begin, leave.started_us if leave.ended_us is None else leave.ended_us, []

    def is_at_stake(self, last: Incarnation) -> bool:
        return (self.handed_over or not self.lives(last)) and self._member() is not None

    def _is_had(self) -> bool:
        """Does any client live whose newest incarnation of the lane was never dropped?"""
        adds = [each.add for each in self.incarnations.values() if each.add is not None]
        newest = {add.client: add.begin for add in sorted(adds, key=lambda add: add.begin)}
        return any(
            self.lives(each) and not self.is_of_an_old_life(each.add.client, each.add)
            for each in self.incarnations.values()
            if each.add is not None and newest[each.add.client] == each.add.begin
        )

    def owes(self, last: Incarnation, read: int, marker: int) -> None:
        add, join, end = last.add, self._member(), self._end_of(last)
        if self._is_had() or add is None or last.start_row is None or join is None or end is None:
            return
        evidence = [*places(add, last.start_row), *end[2], read, marker]
        self.findings.violation(evidence, also=[join, end[0]])

    def taken_over(self, last: Incarnation, add: Op) -> None:
        end, join = self._end_of(last), self._member()
        if end is None or join is None or last.add is None:
            return
        if self._is_had() or any(seq <= self.now for seq in self.context.deaths_of(self.broker)):
            return
        drop = last.dropped
        if drop is not None:
            undisturbed_us = drop.started - self.context.calm_since_us(drop.begin)
            if undisturbed_us > self.bound_us:
                return
        self.stakes += 1
        if add.started - self._calm_since_us(end[1]) > self.bound_us:
            evidence = [*places(last.add, add), *end[2]]
            self.findings.violation(evidence, also=[join, end[0]], name="too-late")

    def _calm_since_us(self, ended_us: int) -> int:
        return max(
            ended_us, self.worked_us, self.strangers_us, self.context.calm_since_us(self.now)
        )


def never_had(rows: Rows, findings: Findings) -> None:
    """Queues that a settled reading finds, of which a group that works on their topic has never had the lane."""
    taken = rows.are(Kind.ADD, Kind.RESET) | (
        rows.are(Kind.DELIVER) & (rows.text("incarnation") != NO_TEXT) & (rows.offset != NONE)
    )
    for queue, events in readings(rows).items():
        if not events:
            continue
        place = events[0][2]
        context, topic = rows.context_of(place), rows.name_of("topic", place)
        config = context.info.config
        if (
            is_copy_topic(topic)
            or config.consume_from != "first"
            or config.strategy == "MACHINE_ROOM"
        ):
            continue
        here = np.flatnonzero(taken & (rows.queue == queue))
        names, words = rows.group[here], rows.words("group")
        of_topic = [group for group, added in context.adds if added == topic and group is not None]
        for group in sorted(of_topic):
            code = words.index(group) if group in words else NO_TEXT - 1
            begins = rows.begin[here[names == code]]
            since = int(begins.min()) if len(begins) else NEVER
            seq, _add = context.adds[group, topic]
            first, marker, is_open = -1, -1, False
            for now, is_end, at in events:
                if is_end:
                    join = context.newest_member(group, now)
                    if at == marker and is_open and first >= 0 and join is not None and now < since:
                        findings.violation(
                            [first, at], also=[seq, join], group=group, name="never-had"
                        )
                    is_open = is_open and at != marker
                    continue
                if rows.offset[at] == NONE:
                    member = context.newest_member(group, now)
                    first, marker, is_open = -1, at, seq < now < since and member is not None
                elif is_open:
                    findings.at_stake_times(at, 1)
                    first = at if first < 0 else first


def kernel(rows: Rows, findings: Findings) -> None:
    settled_kernel(Lane, unread=True, also=(Kind.LOCK,))(rows, findings)
    never_had(rows, findings)


TWIN = Twin("LIV-2", COLUMNS, kernel)
find = TWIN.find


# ---- what breaks the clause, planted


def nobodys_lane(trace: Trace) -> Changes:
    for mine, gone in planting.last_works(trace):
        drop = trace.another(mine[0], mine[-1], 1, value=None)._replace(kind=Kind.DROP)
        rows = Trace(trace.without(gone, ()).rows, trace.info)
        yield partial(lambda r, d: r.with_more([d]), rows, drop)


DEFECTS = (
    Mutant(
        "nobodys-lane",
        "LIV-2",
        "a lane is dropped for good, with a message left",
        nobodys_lane,
        generated=False,
    ),
)
