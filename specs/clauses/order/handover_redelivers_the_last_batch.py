"""A clean handover redelivers at most the last batch.

Clean: the old owner dropped the lane in good order and gave its lease back (an unlock that was answered or handed to
the network). The next incarnation of the lane then begins no earlier than with the old owner's last call: whatever
that one had finished in calls before the last, it had to report. The new owner's first delivery shows when it has
not: it is a message that the old owner had finished, in a call before its last one and before its drop, and above
every offset that it had reported when the new owner began. A report that was made and got lost on its way is nobody's
fault, so an old owner that reported an offset beyond the message is not judged, whatever was stored. What is finished
follows the listener's result (auto mode, or a COMMIT that covers it); messages given up as dead letters don't count.
A call of which nobody saw the result, nor says that it was in auto mode, may have been a manual ROLLBACK: what was
taken before it, no later COMMIT covers.
Whoever records ADD records every COMMIT too: an old owner without an ADD is not judged. A client that takes the lane
again before it gave it back hands nothing over: what it gives back afterwards is its later work, be it that its ADD
was seen, or a delivery, or a crash of the client after the drop. After the unlock it is a new owner like any other. Of
two that left the lane before the new owner began, only the one that gave it back last is asked. A reset clears what is
remembered, the ADD too, and an old owner that met a broker's correction (a commit of the value that a pull was told to
go on at, whether or not who recorded it says `detail=corrected`) is not judged. A commit that was refused reported
nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from specs.clauses.judging import Finding
from specs.clauses.premises import NO_RESET, ORDERLY
from specs.clauses.words import at, who
from specs.facts.findings import Findings
from specs.facts.lanes import (
    BEGIN,
    OP_COLUMNS,
    LaneItems,
    Machine,
    Op,
    Stretch,
    each_lane,
    ends_as,
    may_be_manual,
    may_put_back,
    may_put_back_unseen,
)
from specs.facts.progress import certainly_acknowledges
from specs.facts.segments import NO_TEXT, NONE
from specs.history.row import Row
from specs.plan.traits import Stake, Trait
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "ORD-14"
TITLE = "a handover redelivers the last batch at most"
STATEMENT = "A clean handover redelivers at most the last batch, unless a report of the consumed offset was lost."
PARTY = Party.PAIR
KEY = Key.LANE
PREMISE = (ORDERLY, NO_RESET)
SOURCES = ("docs/sources.md#client-leases", "docs/sources.md#offsets")
STAKES = (Stake(Trait.CLEAN_CHANGE, brings=2),)
KINDS = frozenset(
    {Kind.DELIVER, Kind.COMMIT, Kind.ADD, Kind.DROP, Kind.UNLOCK, Kind.RESET, Kind.PULL}
)
NEEDS = frozenset({Kind.DELIVER, Kind.DROP, Kind.UNLOCK})
EXCUSED_BY = frozenset({Kind.CRASH})
COLUMNS = OP_COLUMNS


@dataclass(frozen=True, slots=True)
class RedeliveredMore(Finding):
    """done: the old owner's delivery of the message. last: its last call."""

    add: Row
    done: Row
    last: Row
    drop: Row
    unlock: Row
    again: Row


@dataclass(frozen=True, slots=True)
class RedeliveredAfterShutdown(RedeliveredMore):
    """The old owner was shutting down when it dropped the lane."""


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
                self.broken(
                    RedeliveredAfterShutdown if left.leaving else RedeliveredMore,
                    add=old.add,
                    done=done,
                    last=old.last,
                    drop=left.drop,
                    unlock=left.unlock,
                    again=op,
                )
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


judge = each_lane(Lane, KINDS, lease=False)


def explain(found: RedeliveredMore) -> str:
    done, last, again = found.done, found.last, found.again
    return (
        f"{who(again)} began {again.lane} with offset {again.queue_offset} at {at(again)}, although {who(done)} had "
        f"finished it in a call of {at(done)} and dropped the lane in good order at {at(found.drop)}; all that may "
        f"come again is its last call, of offset {last.queue_offset}, but it had not reported that far"
    )
