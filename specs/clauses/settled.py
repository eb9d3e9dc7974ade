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
"""

from __future__ import annotations

from collections.abc import Iterable

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.progress import PROGRESS_KINDS, GroupProgress, Incarnation, QueueProgress
from specs.clauses.rows import is_copy_topic, is_manual, over_us
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome

SETTLED_KINDS = (PROGRESS_KINDS - {Kind.SEND}) | {Kind.READ}
SETTLED = "settled"
LEASE = "broker_lease_ms"
"""The setting without which nobody knows for how long a client that died keeps its lanes."""


def wants(row: Row) -> bool:
    """Copies are consumed in other ways."""
    return not is_copy_topic(row.topic)


class _Group:
    """One group: its lane's last incarnation, calls of it that run, and the first message that the drain found owed.

    worked_us: when the last call of the lane ended. unseen: by offset, the dead letters and calls of which nobody saw
    what came of them, and that may have finished it.
    """

    __slots__ = ("handed_over", "last", "manual", "owed", "running", "unseen", "worked_us")

    def __init__(self) -> None:
        self.last: Incarnation | None = None
        self.handed_over = False  # has the lane had more than one incarnation?
        self.running: set[int] = set()
        self.manual = False
        self.owed: Row | None = None
        self.worked_us = -1
        self.unseen: dict[int, set[int]] = {}

    def ends(self, row: Row) -> None:
        """A dead letter or a call ends."""
        offset = row.queue_offset
        if offset is None:
            return
        if row.kind is Kind.DEAD_LETTER and row.outcome in (Outcome.OK, Outcome.REFUSED):
            self.unseen.get(offset, set()).discard(row.seq_begin)
        elif row.kind is Kind.DELIVER and row.outcome is Outcome.UNKNOWN:
            self.unseen.setdefault(offset, set()).add(row.seq_begin)


class SettledJudge(Judge):
    """Follows the progress of a queue's groups. A subclass says what is wrong about a lane that owes a message."""

    __slots__ = ("groups", "marker", "progress")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.progress = QueueProgress(self.context)
        self.groups: dict[str, _Group] = {}
        self.marker: Row | None = None  # the settled reading that is under way

    @property
    def rests_for_certain(self) -> bool:
        """Is it known how long a client that died keeps its lanes, or that none has died?"""
        none_died = self.context.info.closed_world and not self.context.last_death
        return none_died or LEASE not in self.config.untold

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.READ:
            if row.queue_offset is not None:
                self._read(row, row.queue_offset)
            elif row.detail == SETTLED and row.outcome is Outcome.OK:
                self.marker = row
                for group in self.groups.values():
                    group.owed = None
                self.reading_begins(row)
            return NOTHING
        group = self.groups.setdefault(row.group or "", _Group())
        found: Iterable[Finding] = NOTHING
        if row.kind is Kind.ADD and group.last is not None and not group.running:
            found = self.taken_over(group.last, group.worked_us, row)
        self.progress.begins(row)
        if row.kind is Kind.ADD and row.incarnation is not None:
            group.handed_over = group.last is not None
            group.last = self.progress.group(row).incarnations[row.incarnation]
            group.running.clear()
        elif row.kind is Kind.DEAD_LETTER and row.queue_offset is not None:
            group.unseen.setdefault(row.queue_offset, set()).add(row.seq_begin)
        elif row.kind is Kind.DELIVER:
            if row.incarnation is not None and row.queue_offset is not None:
                group.unseen.pop(row.queue_offset, None)
            group.manual = group.manual or is_manual(row)
            if group.last is not None and row.incarnation == group.last.name:
                group.running.add(row.seq_begin)
        return found

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.kind is not Kind.READ:
            self.progress.ends(row)
            group = self.groups[row.group or ""]
            group.ends(row)
            if row.kind is Kind.DELIVER:
                group.running.discard(row.seq_begin)
                group.worked_us = max(group.worked_us, over_us(row))
            return NOTHING
        if self.marker is None or row.seq_begin != self.marker.seq_begin:
            return NOTHING
        self.marker = None
        found: list[Finding] = []
        for name in sorted(self.groups):
            group = self.groups[name]
            if group.owed is not None and group.last is not None:
                found.extend(self.owes(name, group.last, group.owed, row))
        found.extend(self.reading_ends(row))
        return found

    def _read(self, row: Row, offset: int) -> None:
        if self.marker is None or row.outcome is not Outcome.OK:
            return
        self.reads(row)
        for name, group in self.groups.items():
            progress, last = self.progress.groups.get(name), group.last
            if progress is None or last is None or last.start is None or group.manual:
                continue
            if self.context.is_filtered(name):
                continue
            if offset < self.counts_from(progress, last):
                continue
            if progress.was_reset or not self.is_at_stake(name, last, group.handed_over):
                continue
            if group.running and not self.has_died(last):
                continue
            if progress.may_be_given_up(offset):
                continue
            is_done = self.is_done(progress, offset)
            if not is_done and (last.asked or group.unseen.get(offset)):
                continue
            self.opportunities += 1
            if group.owed is None and not is_done:
                group.owed = row

    def counts_from(self, progress: GroupProgress, last: Incarnation) -> int:
        """The first offset whose message the group has to finish."""
        return last.start or 0

    def is_done(self, progress: GroupProgress, offset: int) -> bool:
        """Does the group owe nothing of the message any more?"""
        return offset in progress.finished

    def taken_over(self, last: Incarnation, worked_us: int, add: Row) -> Iterable[Finding]:
        """The lane is added anew, after this incarnation of it. worked_us: when its last call had ended."""
        return NOTHING

    def reading_begins(self, marker: Row) -> None:
        """A settled reading begins."""

    def reads(self, row: Row) -> None:
        """A settled reading finds a message."""

    def reading_ends(self, marker: Row) -> Iterable[Finding]:
        """A settled reading is over."""
        return NOTHING

    def has_died(self, last: Incarnation) -> bool:
        """Did the incarnation's client crash?"""
        return last.add is not None and self.context.client_died_since(last.add.client_id, last.add)

    def lives(self, last: Incarnation) -> bool:
        """Does the client of the incarnation still work on the lane, as far as anybody knows?"""
        if last.add is None or last.dropped is not None or self.has_died(last):
            return False
        return self.context.is_leaving(last.add.client_id, last.add.group) is None

    def is_at_stake(self, group: str, last: Incarnation, handed_over: bool) -> bool:
        """Is the clause about a lane of which this was the last incarnation, and perhaps not the only one?"""
        return False

    def owes(self, group: str, last: Incarnation, read: Row, marker: Row) -> Iterable[Finding]:
        """The group owes the message that was read."""
        return NOTHING
