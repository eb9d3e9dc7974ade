"""A manual ROLLBACK replays everything taken and not committed, and counts nothing.

In manual mode a SUCCESS leaves its messages taken until a COMMIT. A ROLLBACK puts them all back, with its own batch:
(a) until each of them has come again, no call of the incarnation delivers anything beyond the lowest that has not, and
(b) each of them carries, when it comes again, the retry counter that it carried before. An auto call that acknowledges,
or whose message is given up, commits all that was taken as well; so may a call of which nobody knows how it ended.
After a message was given up in manual mode, or may have been where nobody saw it, nothing is claimed of what was taken
before it. Nor is anything claimed of a call that ended after the next one had begun, or by one that began before the
ROLLBACK's had ended. Nothing is remembered across an ADD or a reset.
"""

from __future__ import annotations

from dataclasses import dataclass

from specs.clauses.judging import Finding
from specs.clauses.premises import NO_RESET, ORDERLY
from specs.clauses.rows import over_us
from specs.clauses.words import at, who
from specs.facts.findings import Findings
from specs.facts.lanes import (
    END,
    OP_COLUMNS,
    LaneItems,
    Machine,
    Op,
    Stretch,
    each_lane,
    ended_before,
)
from specs.facts.segments import NO_TEXT, NONE
from specs.history.row import Row
from specs.plan.traits import Stake, Trait
from specs.vocabulary import LISTENER_RESULTS, Key, Kind, Outcome, Party

ID = "RTY-9"
TITLE = "a manual ROLLBACK replays all that was taken"
STATEMENT = (
    "A ROLLBACK in manual mode replays all that was taken and not committed, and counts no retry."
)
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (ORDERLY, NO_RESET)
SOURCES = ("docs/sources.md#orderly-loop",)
STAKES = (Stake(Trait.ROLLBACK),)
KINDS = frozenset({Kind.DELIVER, Kind.DEAD_LETTER, Kind.ADD, Kind.RESET})
SETTINGS = ("max_reconsume_times",)
NEEDS = frozenset({Kind.DELIVER})
COLUMNS = OP_COLUMNS


@dataclass(frozen=True, slots=True)
class NotReplayed(Finding):
    """taken: the lowest message that had to come before, or the one whose counter moved (counted)."""

    taken: Row
    rollback: Row
    next: Row
    counted: bool


_AUTO_FINISHES = (Outcome.SUCCESS, Outcome.COMMIT, Outcome.ROLLBACK)


class Work:
    """One incarnation: what it took and did not commit, and what a ROLLBACK put back that has not come again.

    taken: calls, and stretches of which what lies after the last commit counts; the latest last. spent: the highest
    offset that it may have given up unseen, should it go on beyond.
    """

    __slots__ = ("call", "replay", "rollback", "spent", "taken")

    def __init__(self) -> None:
        self.call = NONE
        self.taken: list[Op | Stretch] = []
        self.rollback: Op | None = None
        self.replay: dict[int, tuple[Op, Op]] = {}
        self.spent = NONE


class Lane(Machine):
    """Follows what is taken, in the lanes with a manual ROLLBACK."""

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.works: dict[int, Work] = {}
        self.rolls = any(
            what == END and op.outcome is Outcome.ROLLBACK and op.manual
            for what, _when, op in lane.items
        )

    def takes(self, stretch: Stretch) -> bool:
        if not self.rolls:
            return True
        first = stretch.first
        work = self.works.setdefault(first.incarnation, Work())
        if work.replay or work.rollback is not None:
            return False
        if (
            not first.manual
            or stretch.finished_to > first.offset
            or NONE < work.spent < first.offset
        ):
            work.taken.clear()
        if first.manual and stretch.finished_to < stretch.stop:
            work.taken.append(stretch)
        work.call, work.spent = stretch.last.op, NONE
        return True

    def begins(self, op: Op) -> None:
        if not self.rolls:
            return
        if op.kind is Kind.RESET:
            self.works.clear()
        elif op.kind is Kind.ADD:
            self.works.pop(op.incarnation, None)
        elif op.kind is Kind.DELIVER and op.incarnation != NO_TEXT and op.offset >= 0:
            work = self.works.setdefault(op.incarnation, Work())
            if op.op != work.call:
                work.call = op.op
                self._begin_call(work, op)
            self._leave_behind(work, op)
            put_back = work.replay.pop(op.offset, None)
            if put_back is not None:
                self.stakes += 1
                self._count(*put_back, op)
            if op.outcome not in LISTENER_RESULTS:  # nobody knows whether it commits
                work.taken, work.rollback = [], None

    def _begin_call(self, work: Work, op: Op) -> None:
        if NONE < work.spent < op.offset:
            work.taken, work.rollback = [], None
        work.spent = NONE
        if work.rollback is not None:
            for taken in self.lane.digest.calls_of(work.taken):
                work.replay[taken.offset] = (taken, work.rollback)
            work.taken, work.rollback = [], None

    def _leave_behind(self, work: Work, op: Op) -> None:
        lowest = min(work.replay, default=op.offset)
        if lowest >= op.offset:
            return
        taken, rollback = work.replay[lowest]
        work.replay = {offset: back for offset, back in work.replay.items() if offset >= op.offset}
        if ended_before(rollback, op):
            self.stakes += 1
            self.broken(NotReplayed, {"counted": False}, taken=taken, rollback=rollback, next=op)

    def _count(self, before: Op, rollback: Op, op: Op) -> None:
        known = NONE not in (before.reconsume, op.reconsume)
        if known and before.reconsume != op.reconsume and ended_before(rollback, op):
            self.broken(NotReplayed, {"counted": True}, taken=before, rollback=rollback, next=op)

    def ends(self, op: Op) -> None:
        work = (
            self.works.get(op.incarnation) if op.incarnation != NO_TEXT and op.offset >= 0 else None
        )
        if work is None:
            return
        if op.kind is Kind.DEAD_LETTER:
            commits = op.outcome is Outcome.OK
        elif op.kind is Kind.DELIVER:
            commits = op.outcome is Outcome.COMMIT if op.manual else op.outcome in _AUTO_FINISHES
        else:
            return
        if commits:
            work.taken, work.rollback = [], None
        elif op.kind is Kind.DELIVER and self.used_up(op):
            work.spent = max(work.spent, op.offset)
        elif op.kind is Kind.DELIVER and op.manual and op.op == work.call:
            if op.outcome in (Outcome.SUCCESS, Outcome.ROLLBACK):
                work.taken.append(op)
            if op.outcome is Outcome.ROLLBACK:
                work.rollback = op


judge = each_lane(Lane, KINDS, lease=False)


def explain(found: NotReplayed) -> str:
    taken, new, rollback = found.taken, found.next, found.rollback
    said = f"the ROLLBACK that ended at {over_us(rollback) / 1_000_000:.3f} s"
    if found.counted:
        return (
            f"{who(new)} delivered offset {new.queue_offset} of {new.lane} at {at(new)} as retry "
            f"{new.reconsume_times}; it was retry {taken.reconsume_times} before {said}, which counts nothing"
        )
    return (
        f"{who(new)} delivered offset {new.queue_offset} of {new.lane} at {at(new)}, although {said} had put offset "
        f"{taken.queue_offset} back, which was taken and not committed and has not come again"
    )
