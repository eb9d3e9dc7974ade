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

What *settled* means, and what else is left out, is said in `specs.clauses.settled`. Within what bound the survivor to
whom a dead owner's lane is assigned takes it is the affair of LSE-5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from specs.clauses.judging import Finding
from specs.clauses.premises import AUTO_MODE, DEALT, NO_FILTER, NO_RESET, ORDERLY, SETTLED, Premise
from specs.clauses.rows import is_copy_topic
from specs.clauses.settled import SETTLED_KINDS
from specs.clauses.words import at, ms, who
from specs.facts.findings import Findings
from specs.facts.lanes import LaneItems, Op
from specs.facts.progress import Incarnation
from specs.facts.rows import Rows
from specs.facts.segments import MS, NEVER, NO_TEXT, NONE
from specs.facts.settled import SETTLED_COLUMNS, Settled, readings, settled_kernel
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
COLUMNS = SETTLED_COLUMNS
EXCUSED_BY = frozenset({Kind.CRASH, Kind.JOIN, Kind.LEAVE})
CONCLUDES_FROM_ABSENCE = True


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
        roles = {"add": add.place, "start": last.start_row.place, "read": read, "marker": marker}
        self._found(Orphaned, roles, join, end)

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
            roles = {"add": last.add.place, "again": add.place}
            bound_us = self.bound_us - self.context.info.clock_bound_us
            self._found(TooLate, roles, join, end, {"bound_ms": bound_us // MS})

    def _found(
        self,
        kind: type[Finding],
        roles: Mapping[str, int],
        join: int,
        end: tuple[int, int, list[int]],
        also: Mapping[str, int] | None = None,
    ) -> None:
        seq, _us, of_lane = end
        if of_lane:
            self.findings.shown(kind, {**roles, "end": of_lane[0]}, also, of_context={"join": join})
        else:
            self.findings.shown(kind, roles, also, of_context={"join": join, "end": seq})

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
            for now, is_end, at_place in events:
                if is_end:
                    join = context.newest_member(group, now)
                    if (
                        at_place == marker
                        and is_open
                        and first >= 0
                        and join is not None
                        and now < since
                    ):
                        findings.shown(
                            NeverHad,
                            {"read": first, "marker": at_place},
                            of_context={"add": seq, "join": join},
                            group=group,
                        )
                    is_open = is_open and at_place != marker
                    continue
                if rows.offset[at_place] == NONE:
                    member = context.newest_member(group, now)
                    first, marker, is_open = -1, at_place, seq < now < since and member is not None
                elif is_open:
                    findings.at_stake_times(at_place, 1)
                    first = at_place if first < 0 else first


def judge(rows: Rows, findings: Findings) -> None:
    settled_kernel(Lane, unread=True, also=(Kind.LOCK,))(rows, findings)
    never_had(rows, findings)


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
