"""What a settled drain shows of each group: the lowest message that it still owes, and who has its lane.

A drain is settled (`detail=settled` on its markers) when before it all faults were healed, who had died was started
again, and nothing happened for longer than anything waits in a healthy system. What is not finished then never will
be. Only messages that the drain itself finds count, at or after the start of the lane's last incarnation; a clause may
say that they count from an earlier one on. Nothing is concluded of a group whose listener chose the manual mode (it may
leave messages open), of one that does not subscribe to every message, as the start of a member tells (JOIN, `view`), of
a lane whose offset was reset, of one whose listener call has not returned, of one whose last incarnation looked its
start up where nobody saw the answer, and of a message that may have been given up where nobody told, or that may be
finished: nobody saw how its dead letter was answered, or how a call of it ended (`unknown`; one that was cut finished
nothing), and it was not delivered since. Nothing is sent while a queue is read so: that is part of what settled says.

The lanes are gone through as for any clause about progress; between their events the readings of the queue are taken
in: a settled reading asks, for each message that it finds, whether the lane's group has finished it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import groupby

from specs.clauses.rows import is_copy_topic
from specs.facts.findings import Findings
from specs.facts.lanes import OP_COLUMNS, Digest, LaneItems, Op, Stretch, run_lane
from specs.facts.progress import PROGRESS_KINDS, Incarnation, Progress
from specs.facts.rows import Rows
from specs.facts.segments import NEVER, NO_TEXT, NONE, NOWHERE
from specs.vocabulary import Kind, Outcome

SETTLED = "settled"
LEASE = "broker_lease_ms"
"""The setting without which nobody knows for how long a client that died keeps its lanes."""
SETTLED_KINDS = (PROGRESS_KINDS - {Kind.SEND}) | {Kind.READ}
SETTLED_COLUMNS = (*OP_COLUMNS, "message_id", "delay_level")

Event = tuple[int, bool, int]
"""(seq, is it an end, position): of a READ row."""


def readings(rows: Rows) -> dict[int, list[Event]]:
    """The begins of all READ rows and the ends of settled markers, in their order, by queue."""
    where = rows.of(Kind.READ)
    settled = rows.text("detail") == rows.code("detail", SETTLED)
    done = rows.ended_as(Outcome.OK)
    found: dict[int, list[Event]] = {}
    for place in where.tolist():
        events = found.setdefault(int(rows.queue[place]), [])
        if rows.offset[place] != NONE:
            if done[place]:
                events.append((int(rows.begin[place]), False, place))
        elif settled[place] and done[place]:
            events.append((int(rows.begin[place]), False, place))
            if rows.end[place] < NEVER:
                events.append((int(rows.end[place]), True, place))
    for events in found.values():
        events.sort()
    return found


class Settled(Progress):
    """One group on the queue. A subclass says when it is at stake, and what shows that a message is owed."""

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.events: list[Event] = []
        self.at = 0
        self.last: Incarnation | None = None
        self.handed_over = False
        self.last_code = NO_TEXT
        self.running: set[int] = set()
        self.taken_by_hand = False  # has the listener chosen the manual mode?
        self.worked_us = -1  # when the last call of the lane ended
        # By offset: which dead letters and calls may have finished it, and nobody saw what came of them.
        self.may_finish: dict[int, list[int]] = {}
        self.marker = NOWHERE
        self.owing = NOWHERE

    # ---- the lane

    def takes(self, stretch: Stretch) -> bool:
        self.catch_up(stretch.first.begin)
        if self.at < len(self.events) and self.events[self.at][0] < stretch.last.end:
            return False
        if not super().takes(stretch):
            return False
        self.taken_by_hand = self.taken_by_hand or stretch.first.manual
        self.worked_us = max(self.worked_us, stretch.last.ended)
        return True

    def begins(self, op: Op) -> None:
        self.catch_up(op.begin)
        if op.kind is Kind.ADD and self.last is not None and not self.running:
            self.taken_over(self.last, op)
        super().begins(op)
        if op.kind is Kind.ADD and op.incarnation != NO_TEXT:
            self.handed_over = self.last is not None
            self.last, self.last_code = self.incarnations[op.incarnation], op.incarnation
            self.running.clear()
        elif op.kind is Kind.DEAD_LETTER:
            self.may_finish.setdefault(op.offset, []).append(op.place)
        elif op.kind is Kind.DELIVER:
            if op.incarnation != NO_TEXT:  # it comes again: it was not finished
                self.may_finish.pop(op.offset, None)
            self.taken_by_hand = self.taken_by_hand or op.manual
            if self.last is not None and op.incarnation == self.last_code:
                self.running.add(op.place)

    def ends(self, op: Op) -> None:
        self.catch_up(op.end)
        super().ends(op)
        self.running.discard(op.place)
        unseen = self.may_finish.get(op.offset, [])
        if op.kind is Kind.DEAD_LETTER and op.outcome in (Outcome.OK, Outcome.REFUSED):
            self.may_finish[op.offset] = [each for each in unseen if each != op.place]
        if op.kind is Kind.DELIVER and op.outcome is Outcome.UNKNOWN:
            self.may_finish[op.offset] = [*unseen, op.place]
        if op.kind is Kind.DELIVER:
            self.worked_us = max(self.worked_us, op.ended)

    # ---- the readings

    def catch_up(self, now: int) -> None:
        """Take in the readings up to a seq."""
        before = self.now
        while self.at < len(self.events) and self.events[self.at][0] < now:
            seq, is_end, place = self.events[self.at]
            self.at += 1
            self.now = seq
            if is_end:
                if place == self.marker:
                    self.marker = NOWHERE
                    if self.owing != NOWHERE and self.last is not None:
                        self.owes(self.last, self.owing, place)
            elif self.lane.digest.rows.offset[place] == NONE:
                self.marker, self.owing = place, NOWHERE
            elif self.marker != NOWHERE:
                self._read(place)
        self.now = before

    def _read(self, place: int) -> None:
        offset, last = int(self.lane.digest.rows.offset[place]), self.last
        if last is None or last.start is None or self.taken_by_hand or self.was_reset:
            return
        if offset < self.counts_from(last) or (self.untold and offset in self.unknown):
            return
        if self.context.is_filtered(self.lane.group, self.now):
            return
        if not self.is_at_stake(last) or (self.running and not self.has_died(last)):
            return
        owes = not self.is_done(offset)
        if owes and (last.asked or self.may_finish.get(offset)):
            return
        self.stakes += 1
        if owes and self.owing == NOWHERE:
            self.owing = place

    def counts_from(self, last: Incarnation) -> int:
        """The first offset whose message the group has to finish."""
        return last.start or 0

    def is_done(self, offset: int) -> bool:
        """Does the group owe nothing of the message any more?"""
        return offset in self.finished

    def taken_over(self, last: Incarnation, add: Op) -> None:
        """The lane is added anew, after this incarnation of it."""

    def has_died(self, last: Incarnation) -> bool:
        return last.add is not None and self.client_died_since(last.add.client, last.add)

    def lives(self, last: Incarnation) -> bool:
        if last.add is None or last.dropped is not None or self.has_died(last):
            return False
        return not self.leaving(last.add.client)

    @property
    def rests_for_certain(self) -> bool:
        """Is it known how long a client that died keeps its lanes, or that none has died?"""
        context = self.context
        none_died = context.info.closed_world and not context.has_a_client_died(self.now)
        return none_died or LEASE not in self.config.untold

    def is_at_stake(self, last: Incarnation) -> bool:
        return False

    def owes(self, last: Incarnation, read: int, marker: int) -> None:
        """The group owes the message that was read."""


def each_settled_lane(
    machine: type[Settled], *, unread: bool = False, also: Iterable[Kind] = ()
) -> Callable[[Rows, Findings], None]:
    """What judges by settled drains: a machine per lane, with the readings of its queue.

    unread: lanes whose queue nobody read are gone through as well. also: further kinds that the machine is shown.
    """
    wanted = frozenset(PROGRESS_KINDS).union(also)
    return partial(_run_settled, machine=machine, unread=unread, wanted=wanted)


def _run_settled(
    rows: Rows,
    findings: Findings,
    *,
    machine: type[Settled],
    unread: bool,
    wanted: frozenset[Kind],
) -> None:
    found = readings(rows)
    if not found and not unread:
        return
    for queue, lanes in groupby(
        rows.shared(Digest).lanes(wanted, grouped=False), lambda lane: int(rows.queue[lane.place])
    ):
        for lane in lanes:
            if (queue not in found and not unread) or is_copy_topic(lane.topic):
                continue
            state = machine(lane, findings)
            state.events = found.get(queue, [])
            run_lane(state, lane, NEVER)
            state.catch_up(NEVER)
            if state.stakes:
                findings.at_stake_times(lane.place, state.stakes)
