"""ORD-14 over columns: a stretch of calls is remembered as one, and opened only to show a message."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.clauses.rows import is_manual
from specs.facts.findings import Findings
from specs.facts.lanes import (
    BEGIN,
    OP_COLUMNS,
    LaneItems,
    Machine,
    Op,
    Stretch,
    ends_as,
    machine_kernel,
    may_be_manual,
    may_put_back,
    may_put_back_unseen,
)
from specs.facts.progress import certainly_acknowledges
from specs.facts.segments import NO_TEXT, NONE
from specs.vocabulary import Kind, Outcome


class Some(NamedTuple):
    """The deliveries of a stretch with the offsets low..stop-1."""

    low: int
    stop: int
    stretch: Stretch


def span(each: Op | Some) -> tuple[int, int]:
    """The offsets low..stop-1 of deliveries."""
    return (each.low, each.stop) if isinstance(each, Some) else (each.offset, each.offset + 1)


class Work:
    """One incarnation. finished: deliveries that it is done with, taken: those that it has not committed; the latest
    last. last: the delivery with which its last call began."""

    __slots__ = ("add", "drop", "finished", "frozen", "last", "left", "taken", "told")

    def __init__(self, add: Op | None, left: Left | None) -> None:
        self.add = add
        self.left = left
        self.finished: list[Op | Some] = []
        self.taken: list[Op | Some] = []
        self.told = -1  # below it everything is reported
        self.last: Op | None = None
        self.drop: Op | None = None
        self.frozen = False  # what it does from now on comes too late, or says nothing


class Left(NamedTuple):
    """A lane that was left in good order."""

    work: Work
    drop: Op
    unlock: Op
    leaving: bool


class Lane(Machine):
    """What each incarnation has finished and not reported, and who left the lane last."""

    ENDS = ends_as([Kind.DELIVER])

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.works: dict[int, Work] = {}
        self.dropped: dict[int, Work] = {}
        self.left: Left | None = None

    def takes(self, stretch: Stretch) -> bool:
        first = stretch.first
        work = self.works.get(first.incarnation)
        if work is None or work.left is not None or work.drop is not None or work.frozen:
            return False
        if work.last is not None and work.last.op == first.op:
            return False
        if may_be_manual(first) and not first.manual:
            return False
        until = stretch.finished_to if first.manual else stretch.stop
        if until > first.offset:
            if any(
                low < stretch.stop and first.offset < stop for low, stop in map(span, work.taken)
            ):
                return False
            work.finished += [Some(first.offset, until, stretch), *work.taken]
            work.taken.clear()
        if until < stretch.stop:
            work.taken.append(Some(until, stretch.stop, stretch))
        work.last = stretch.head
        return True

    def begins(self, op: Op) -> None:
        work = self.works.get(op.incarnation) if op.incarnation != NO_TEXT else None
        if op.kind is Kind.RESET:
            self.works.clear()
            self.dropped.clear()
            self.left = None
        elif op.kind is Kind.UNLOCK:
            self._unlocked(op)
        elif op.incarnation == NO_TEXT:
            return
        elif op.kind is Kind.ADD:
            self._begun(op, op)
        elif op.kind is Kind.DROP and work is not None:
            work.drop = op
            self.dropped[op.client] = work
        elif op.kind is Kind.COMMIT and work is not None and op.value != NONE:
            self._reported(work, op)
        elif op.kind is Kind.DELIVER and op.offset != NONE:
            self._delivered(work or self._begun(op, None), op)

    def _begun(self, first: Op, add: Op | None) -> Work:
        work = self.works[first.incarnation] = Work(add, self.left)
        self.dropped.pop(first.client, None)  # a client that goes on hands nothing over
        if self.left is not None:
            self.left.work.frozen = True
        self.left = None
        return work

    def _unlocked(self, op: Op) -> None:
        work = self.dropped.pop(op.client, None)
        if work is None or work.drop is None or op.outcome not in (Outcome.OK, Outcome.SENT):
            return
        if self.client_died_since(op.client, work.drop):
            return
        if work.add is not None and not work.frozen:
            self.left = Left(work, work.drop, op, self.leaving(op.client))

    def _reported(self, work: Work, op: Op) -> None:
        if op.correction:
            work.frozen = True
            work.finished.clear()
        elif op.value > work.told and not work.frozen:
            work.told = op.value
            work.finished = [each for each in work.finished if span(each)[1] > op.value]

    def _delivered(self, work: Work, op: Op) -> None:
        left, work.left = work.left, None
        if left is not None:
            self.stakes += 1
            old = left.work
            done = self._done_with(old, op.offset)
            if done is not None and old.last is not None and op.offset < old.last.offset:
                name = "redelivered-after-shutdown" if left.leaving else "redelivered-more"
                self.found(old.add, done, old.last, left.drop, left.unlock, op, name=name)
        if not work.frozen and (work.last is None or work.last.op != op.op):
            work.last = op
        if may_put_back_unseen(op):
            work.taken.clear()

    def _done_with(self, work: Work, offset: int) -> Op | None:
        """The latest delivery that finished the offset, unless it was reported."""
        if offset < work.told:
            return None
        for each in reversed(work.finished):
            low, stop = span(each)
            if not low <= offset < stop:
                continue
            if isinstance(each, Op):
                return each
            ops = self.lane.digest.expand(each.stretch)
            return next(op for _at, phase, op in ops if phase == BEGIN and op.offset == offset)
        return None

    def ends(self, op: Op) -> None:
        work = self.works.get(op.incarnation) if op.incarnation != NO_TEXT else None
        if (
            op.kind is not Kind.DELIVER
            or work is None
            or op.offset == NONE
            or work.drop is not None
            or work.frozen
        ):
            return
        if certainly_acknowledges(op):
            work.finished.append(op)
            work.finished.extend(work.taken)
            work.taken.clear()
        elif op.outcome is Outcome.SUCCESS:
            work.taken.append(op)
        elif may_put_back(op):
            work.taken.clear()


_KINDS = (Kind.DELIVER, Kind.COMMIT, Kind.ADD, Kind.DROP, Kind.UNLOCK, Kind.RESET)
TWIN = Twin("ORD-14", OP_COLUMNS, machine_kernel(Lane, _KINDS, lease=False))
find = TWIN.find


# ---- what breaks the clause, planted


_OWNER = ("client_id", "process", "incarnation")
"""The columns that say whose delivery it is."""


def handover_without_report(trace: Trace) -> Changes:
    """The old owner reports nothing, and the new one begins with the first of what the old one had finished."""
    for rows in trace.works:
        drop = next((row for row in rows if row.kind is Kind.DROP), None)
        lane = trace.lanes[rows[0].lane]
        if drop is None:
            continue
        calls = [row for row in rows if row.kind is Kind.DELIVER and row.seq_begin < drop.seq_begin]
        done = [row for row in calls if row.outcome is Outcome.SUCCESS and not is_manual(row)]
        unlock = next(
            (r for r in lane if r.kind is Kind.UNLOCK and r.seq_begin > drop.seq_begin), None
        )
        add = next(
            (row for row in lane if row.kind is Kind.ADD and row.seq_begin > drop.seq_begin), None
        )
        if len(done) < 2 or unlock is None or unlock.client_id != drop.client_id or add is None:
            continue
        theirs = [
            row
            for row in lane
            if row.incarnation == add.incarnation and row.seq_begin > add.seq_begin
        ]
        first = next((row for row in theirs if row.kind is Kind.DELIVER), None)
        early = (done[0].queue_offset or 0) < (calls[-1].queue_offset or 0) and done[
            0
        ].seq_begin != calls[-1].seq_begin
        if first is None or not early or unlock.seq_begin > add.seq_begin:
            continue
        commits = [row.seq_begin for row in rows if row.kind is Kind.COMMIT]
        again = trace.another(done[0], first, 1, **{name: getattr(first, name) for name in _OWNER})
        again = again._replace(seq_begin=first.seq_begin - 2, seq_end=first.seq_begin - 1)
        yield partial(
            lambda g, a, d: Trace(trace.without(g, ()).rows, trace.info).with_more(
                [a], [d.seq_begin]
            ),
            commits,
            again,
            drop,
        )


DEFECTS = (
    Mutant(
        "handover-without-report",
        "ORD-14",
        "an old owner reports nothing at all",
        handover_without_report,
    ),
)
