"""RTY-9 over columns: lanes in which nothing was rolled back by hand are passed over."""

from __future__ import annotations

from functools import partial

from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.clauses.rows import is_manual
from specs.facts.findings import Findings
from specs.facts.lanes import (
    END,
    OP_COLUMNS,
    LaneItems,
    Machine,
    Op,
    Stretch,
    ended_before,
    machine_kernel,
)
from specs.facts.segments import NO_TEXT, NONE
from specs.vocabulary import LISTENER_RESULTS, LISTENER_SUSPENDS, Kind, Outcome

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
            self.found(taken, rollback, op)

    def _count(self, before: Op, rollback: Op, op: Op) -> None:
        known = NONE not in (before.reconsume, op.reconsume)
        if known and before.reconsume != op.reconsume and ended_before(rollback, op):
            self.found(before, rollback, op)

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
        elif op.kind is Kind.DELIVER and op.outcome in LISTENER_SUSPENDS:
            limit = self.config.max_reconsume_times
            if limit >= 0 and (op.reconsume == NONE or op.reconsume >= limit):
                work.spent = max(work.spent, op.offset)
        elif op.kind is Kind.DELIVER and op.manual and op.op == work.call:
            if op.outcome in (Outcome.SUCCESS, Outcome.ROLLBACK):
                work.taken.append(op)
            if op.outcome is Outcome.ROLLBACK:
                work.rollback = op


_KINDS = (Kind.DELIVER, Kind.DEAD_LETTER, Kind.ADD, Kind.RESET)
TWIN = Twin("RTY-9", OP_COLUMNS, machine_kernel(Lane, _KINDS, lease=False))
find = TWIN.find


# ---- what breaks the clause, planted


def rollback_counted(trace: Trace) -> Changes:
    for calls in trace.calls:
        for index, row in enumerate(calls):
            again = calls[index + 1] if index + 1 < len(calls) else None
            if (
                row.outcome is not Outcome.ROLLBACK
                or not is_manual(row)
                or again is None
                or row.seq_end is None
            ):
                continue
            if again.reconsume_times is not None and (again.queue_offset or 0) <= (
                row.queue_offset or 0
            ):
                change = {again.seq_begin: {"reconsume_times": again.reconsume_times + 1}}
                about = (row.seq_begin, again.seq_begin)
                yield partial(trace.changed, change, about)


DEFECTS = (
    Mutant(
        "rollback-counted",
        "RTY-9",
        "a replayed message was counted",
        rollback_counted,
        by_hand=True,
    ),
)
