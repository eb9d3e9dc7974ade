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

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding
from specs.clauses.premises import AUTO_MODE, DEALT, NO_FILTER, NO_RESET, ORDERLY, SETTLED, Premise
from specs.clauses.progress import Incarnation
from specs.clauses.rows import over_us
from specs.clauses.settled import SETTLED_KINDS, SettledJudge, wants
from specs.clauses.words import MS, at, ms, who
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

__all__ = ["wants"]


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


class QueueJudge(SettledJudge):
    """At stake where the lane had to find another owner, now or before, or its first one, and the group lives."""

    __slots__ = ("bound_ms", "calm", "leased_us", "nobodys")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        config = self.config
        forgotten_ms = max(config.broker_lease_ms, config.forgotten_ms)
        retried_ms = config.rebalance_ms + config.lock_interval_ms
        self.bound_ms = forgotten_ms + retried_ms + config.delay_bound_ms + config.schedule_slack_ms
        self.leased_us: dict[
            str, int
        ] = {}  # by group: when somebody who is no member may have had the lease
        self.nobodys: dict[
            str, Row | None
        ] = {}  # by group that never had the lane: the first message found
        self.calm: set[int] = set()  # the drops in calm: their seq_begin

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.DROP:
            self._drops(row)
        if row.kind is not Kind.LOCK:
            return super().begins(row)
        group = row.group or ""
        if row.outcome is not Outcome.REFUSED and row.client_id not in self.context.members.get(
            group, {}
        ):
            us = over_us(row)
            self.leased_us[group] = max(us, self.leased_us.get(group, us))
        return NOTHING

    def _drops(self, row: Row) -> None:
        bound_us = self.bound_ms * MS + self.context.info.clock_bound_us
        if self.context.disturbed_us < row.started_us - bound_us:
            self.calm.add(row.seq_begin)

    def ends(self, row: Row) -> Iterable[Finding]:
        return NOTHING if row.kind is Kind.LOCK else super().ends(row)

    def is_at_stake(self, group: str, last: Incarnation, handed_over: bool) -> bool:
        return (handed_over or not self.lives(last)) and self.context.newest_member(
            group
        ) is not None

    def _is_had(self, group: str) -> bool:
        """Has anybody the lane, be it since before its last incarnation?"""
        incarnations = self.progress.groups[group].incarnations.values()
        added = [(mine.add, mine) for mine in incarnations if mine.add is not None]
        added.sort(key=lambda each: each[0].seq_begin)
        newest = {add.client_id: (add, mine) for add, mine in added}
        return any(
            self.lives(mine) and not self.context.is_of_an_old_life(client, add.group, add)
            for client, (add, mine) in newest.items()
        )

    def owes(self, group: str, last: Incarnation, read: Row, marker: Row) -> Iterable[Finding]:
        if self._is_had(group):
            return
        add, start, join, end = (
            last.add,
            last.start_row,
            self.context.newest_member(group),
            self._end_of(last),
        )
        if add is not None and start is not None and end is not None and join is not None:
            yield Orphaned(add, start, end, join, read, marker)

    def _end_of(self, last: Incarnation) -> Row | None:
        """Why an incarnation is over."""
        if last.dropped is not None or last.add is None:
            return last.dropped
        client = last.add.client_id
        if self.has_died(last):
            return self.context.last_death.get(client or "")
        return self.context.is_leaving(client, last.add.group)

    # ------------------------------------------------------------ too late

    def taken_over(self, last: Incarnation, worked_us: int, add: Row) -> Iterable[Finding]:
        end, join, context = self._end_of(last), self.context.newest_member(add.group), self.context
        broker = add.broker or ""
        if last.add is None or end is None or join is None or broker in context.broker_deaths:
            return NOTHING
        if self._is_had(add.group or ""):
            return NOTHING
        if broker in context.epoch_deaths or end.seq_begin in self.calm:
            return NOTHING
        self.opportunities += 1
        ended_us = over_us(end)
        since_us = max(
            ended_us, worked_us, context.disturbed_us, self.leased_us.get(add.group or "", 0)
        )
        if add.started_us - since_us <= self.bound_ms * MS + context.info.clock_bound_us:
            return NOTHING
        return (TooLate(last.add, end, join, add, self.bound_ms),)

    # ------------------------------------------------------------ never had

    def reading_begins(self, marker: Row) -> None:
        self.nobodys.clear()
        if self.config.consume_from != "first" or self.config.strategy in MAY_LEAVE_OUT:
            return
        for group, topic in self.context.first_adds:
            if topic == marker.topic and group is not None and self._never_had(group):
                self.nobodys[group] = None

    def _never_had(self, group: str) -> bool:
        known = self.progress.groups.get(group)
        if known is not None and (known.delivered or known.was_reset or known.was_added):
            return False
        return self.context.newest_member(group) is not None

    def reads(self, row: Row) -> None:
        self.opportunities += len(self.nobodys)
        for group, first in self.nobodys.items():
            self.nobodys[group] = row if first is None else first

    def reading_ends(self, marker: Row) -> Iterable[Finding]:
        for group in sorted(self.nobodys):
            read, add = self.nobodys[group], self.context.first_adds[group, marker.topic]
            join = self.context.newest_member(group)
            if read is not None and join is not None and self._never_had(group):
                yield NeverHad(add, join, read, marker)
        self.nobodys.clear()


judge = QueueJudge


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
