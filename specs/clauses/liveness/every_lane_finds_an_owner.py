"""When all is healed and quiet, no lane with messages left is without an owner while a member of its group lives.

*Orphaned*: judged at a settled drain, of lanes that somebody had and nobody has: each client's newest incarnation was
dropped, or the client left or died. Who has never dropped a lane that others had meanwhile (it stood still, and did not
hear of it) has it still. If the drain finds a message at or after the start of the lane's last incarnation that nobody
of the group has finished, and a member of the group lives, then the lane should have found its way to a member.

*Never had*: likewise of a queue that nobody of the group ever added, where a member of the group lives that adds other
queues of the topic: a queue that came later, or that every member takes for another one's. Judged where the group
consumes from the first message on: then it owes all of them. Not where the members' shares are those of machine rooms:
their list may leave a queue out.

*Too late*: a lane that is added anew was added within the handover bound after its last incarnation ended, with a
member of the group living all the time. The bound is until a dead member is forgotten or a lease runs out, whichever is
longer, a rebalance, one more request for the lease, the delay of a request and the slack of a timer. It runs from the
last of: the incarnation's end, the end of its last call, the last time that somebody who is no member may have been
granted the lease, and the last disturbance of the run (a client that joins, leaves, dies or stands still, a fault, a
clock step; as long after it as all wall clocks together were set back, since who waits by one waits that much longer,
and after a name server's death until brokers and clients have told and asked it again).
Nothing is said where the lane's broker has died, since nobody tells when it is back, nor of a lane that somebody else
has who never dropped it. Nor of a lane that was dropped in calm: by a client that lived on, when nothing had disturbed
the run for as long as that bound. Its queue may have left the topic's route, which no row tells, and come back later.

Where the members' shares are fixed lists nothing is claimed: who has gone leaves a lane that is in nobody else's list.

What *settled* means, and what else is left out, is said in `specs.facts.settled`. Within what bound the survivor to
whom a dead owner's lane is assigned takes it is the affair of LSE-5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from specs.clauses.judging import Finding
from specs.clauses.premises import AUTO_MODE, DEALT, NO_FILTER, NO_RESET, ORDERLY, SETTLED, Premise
from specs.clauses.rows import is_copy_topic, over_us
from specs.clauses.words import at, ms, who
from specs.facts.findings import Findings
from specs.facts.lanes import LaneItems, Op
from specs.facts.progress import Incarnation
from specs.facts.rows import Rows
from specs.facts.segments import MS, NEVER, NO_TEXT, NONE, NOWHERE
from specs.facts.settled import (
    SETTLED_COLUMNS,
    SETTLED_KINDS,
    Event,
    Settled,
    each_settled_lane,
    readings,
)
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "LIV-2"
TITLE = "every lane finds an owner"
STATEMENT = (
    "When faults are healed, a lane finds its next owner within the handover bound, and none with messages left stays "
    "without one."
)
PARTY = Party.PAIR
KEY = Key.QUEUE
PREMISE = (
    ORDERLY,
    SETTLED,
    NO_RESET,
    NO_FILTER,
    AUTO_MODE,
    DEALT,
    Premise("one subscription", "every member of a group subscribes to the same topics (MET-5)"),
)
SOURCES = ("docs/sources.md#membership", "docs/sources.md#client-leases")
KINDS = SETTLED_KINDS | {Kind.LOCK}
SETTINGS = (
    "broker_lease_ms",
    "channel_expiry_ms",
    "consume_from",
    "lock_interval_ms",
    "max_reconsume_times",
    "rebalance_ms",
)
NEEDS = frozenset({Kind.ADD, Kind.DELIVER, Kind.READ})
EXCUSED_BY = frozenset({Kind.CRASH, Kind.JOIN, Kind.LEAVE})
CONCLUDES_FROM_ABSENCE = True
COLUMNS = SETTLED_COLUMNS
MAY_LEAVE_OUT = ("MACHINE_ROOM",)
"""Strategies that deal out, but may leave a queue to nobody."""


@dataclass(frozen=True, slots=True)
class Orphaned(Finding):
    """end: why the last incarnation is over. join: the start of a member that lives."""

    add: Row
    start: Row
    end: Row
    join: Row
    read: Row
    marker: Row


@dataclass(frozen=True, slots=True)
class NeverHad(Finding):
    """add: of another queue of the topic. join: the start of a member that lives."""

    add: Row
    join: Row
    read: Row
    marker: Row


@dataclass(frozen=True, slots=True)
class TooLate(Finding):
    """add: the last incarnation. end: why it was over. again: the next one."""

    add: Row
    end: Row
    join: Row
    again: Row
    bound_ms: int


class End(NamedTuple):
    """Why an incarnation is over: seq_begin of the row that tells, when it was over, and of a drop the row itself."""

    seq: int
    us: int
    drop: Op | None = None


class Lane(Settled):
    """At stake where the lane had to find another owner, now or before, and the group lives.

    strangers_us: when somebody who is no member may have been granted the lease last.
    """

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        config = self.config
        forgotten_ms = max(config.broker_lease_ms, config.forgotten_ms)
        retried_ms = config.rebalance_ms + config.lock_interval_ms
        self.bound_ms = forgotten_ms + retried_ms + config.delay_bound_ms + config.schedule_slack_ms
        self.bound_us = self.bound_ms * MS + self.context.info.clock_bound_us
        self.strangers_us = -1

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
        """The seq of the JOIN of the living member of the group that started last."""
        return self.context.newest_member(self.lane.group, self.now)

    def _end_of(self, last: Incarnation) -> End | None:
        """Why the incarnation is over, if it is."""
        drop = last.dropped
        if drop is not None:
            return End(drop.begin, drop.over_us, drop)
        if last.add is None:
            return None
        client = self.lane.name(last.add.client)
        if self.has_died(last):
            seq = self.context.latest(client, Kind.CRASH, self.now)
            return None if seq is None else End(seq, self.context.died_us[seq])
        leave = self.context.leave_at(client, self.lane.group, self.now)
        return None if leave is None else End(leave.seq_begin, over_us(leave))

    def is_at_stake(self, last: Incarnation) -> bool:
        return (self.handed_over or not self.lives(last)) and self._member() is not None

    def _is_had(self) -> bool:
        """Has anybody the lane, be it since before its last incarnation?"""
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
        roles = {"add": add.place, "start": last.start_row.place, "read": read, "marker": marker}
        self._shown(Orphaned, roles, join, end)

    def taken_over(self, last: Incarnation, add: Op) -> None:
        end, join = self._end_of(last), self._member()
        if end is None or join is None or last.add is None:
            return
        if self._is_had() or any(seq <= self.now for seq in self.context.deaths_of(self.broker)):
            return
        if end.drop is not None and self._was_calm(end.drop):
            return
        self.stakes += 1
        disturbed_us = self.context.calm_since_us(self.now)
        since_us = max(end.us, self.worked_us, self.strangers_us, disturbed_us)
        if add.started - since_us > self.bound_us:
            roles = {"add": last.add.place, "again": add.place}
            self._shown(TooLate, roles, join, end, {"bound_ms": self.bound_ms})

    def _was_calm(self, drop: Op) -> bool:
        """Had nothing disturbed the run for as long as the bound when the lane was dropped?"""
        return self.context.calm_since_us(drop.begin) < drop.started - self.bound_us

    def _shown(
        self,
        kind: type[Finding],
        roles: dict[str, int],
        join: int,
        end: End,
        also: dict[str, int] | None = None,
    ) -> None:
        """A finding of an incarnation that is over. join: the seq of the start of a member that lives."""
        of_context = {"join": join}
        if end.drop is None:
            of_context["end"] = end.seq
        else:
            roles = {**roles, "end": end.drop.place}
        self.findings.shown(kind, roles, also, of_context=of_context)


def judge(rows: Rows, findings: Findings) -> None:
    """The lanes that somebody had, one by one; and the queues of which a group has never had the lane."""
    each_settled_lane(Lane, unread=True, also=(Kind.LOCK,))(rows, findings)
    _never_had(rows, findings)


def _never_had(rows: Rows, findings: Findings) -> None:
    """Queues that a settled reading finds, of which a group that works on their topic has never had the lane."""
    taken = rows.are(Kind.ADD, Kind.RESET) | (
        rows.are(Kind.DELIVER) & (rows.text("incarnation") != NO_TEXT) & (rows.offset != NONE)
    )
    words = rows.words("group")
    for queue, events in readings(rows).items():
        if not events:
            continue
        place = events[0][2]
        context, topic = rows.context_of(place), rows.name_of("topic", place)
        config = context.info.config
        if config.consume_from != "first" or config.strategy in MAY_LEAVE_OUT:
            continue
        if is_copy_topic(topic):
            continue
        here = np.flatnonzero(taken & (rows.queue == queue))
        group_of = rows.group[here]
        of_topic = [group for group, added in context.adds if added == topic and group is not None]
        for group in sorted(of_topic):
            mine = here[group_of == words.index(group)] if group in words else here[:0]
            since = int(rows.begin[mine].min(initial=NEVER))
            _nobodys(rows, findings, events, group, since)


def _nobodys(
    rows: Rows, findings: Findings, events: Sequence[Event], group: str, since: int
) -> None:
    """What settled readings of one queue find while the group has never had it. since: the seq from which it has."""
    context, topic = rows.context_of(events[0][2]), rows.name_of("topic", events[0][2])
    added, _ = context.adds[group, topic]
    marker = first = NOWHERE  # the reading that is under way, and the first message that it found
    for now, is_end, place in events:
        if is_end:
            if place != marker:
                continue
            join = context.newest_member(group, now)
            if first != NOWHERE and join is not None and now < since:
                roles = {"read": first, "marker": marker}
                of_context = {"add": added, "join": join}
                findings.shown(NeverHad, roles, of_context=of_context, group=group)
            marker = NOWHERE
        elif rows.offset[place] == NONE:
            lives = context.newest_member(group, now) is not None
            marker, first = place if lives and added < now < since else NOWHERE, NOWHERE
        elif marker != NOWHERE:
            findings.at_stake_times(place, 1)
            first = place if first == NOWHERE else first


def explain(found: Orphaned | NeverHad | TooLate) -> str:
    add, join = found.add, found.join
    if isinstance(found, NeverHad):
        read = found.read
        return (
            f"nobody of {add.group} ever had {read.queue}, where message {read.message_id} lies at offset "
            f"{read.queue_offset}, although {who(join)} lives, the group had {add.lane} from {at(add)} on, and all was "
            f"healed and quiet by {at(found.marker)}"
        )
    over = {Kind.DROP: "dropped it", Kind.CRASH: "died", Kind.LEAVE: "left"}[found.end.kind]
    if isinstance(found, TooLate):
        again = found.again
        return (
            f"{who(again)} took {add.lane} at {at(again)}, {ms(again.started_us - found.end.started_us)} after "
            f"{who(add)} {over} at {at(found.end)}, although {who(join)} lived; {found.bound_ms} ms are allowed"
        )
    read, marker = found.read, found.marker
    return (
        f"nobody of {add.group} has {add.lane} since {who(add)} {over} at {at(found.end)}, although {who(join)} lives, "
        f"message {read.message_id} at offset {read.queue_offset} is not finished, and all was healed and quiet by "
        f"{at(marker)}"
    )
