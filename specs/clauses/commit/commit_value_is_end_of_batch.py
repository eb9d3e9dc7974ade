"""Every committed value is the end of a finished batch, the start, or what was committed before; and it comes in time.

*Value*: the incarnation's start (its ADD, set anew by its look-up), its last commit's value, or one more than the
highest offset of a batch that it finished: by a call that acknowledges, or by giving the batch's last message up,
perhaps where nobody told. A commit that was refused is none, whatever its value. Judged where the start was seen, and
every look-up was seen to be answered; a broker's correction (of the value that a pull was told to go on at) and a reset
are excused.

*In time*: a batch that a call finished is committed before the client has worked on for longer than the first
persist delay, one persist interval and the slack of a timer. A commit that was refused reported nothing; the time for
the last batch that it would have reported begins anew with the refusal. Judged where the ADD was seen: whoever records
adds records commits. Not claimed after a drop, a pause of the client or a crash of the broker, and said once for each
incarnation. Nor, unless the run declares that clients themselves tell their commits, where a pause of the broker or a
fault of the link stood in the way of one: elsewhere it is seen only once it gets through.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from specs.clauses.judging import Finding
from specs.clauses.premises import BROKER_LIVES, NO_FILTER, NO_RESET, NOT_PAUSED, ORDERLY
from specs.clauses.rows import over_us
from specs.clauses.words import at, ms, start_of, who
from specs.facts.findings import Findings
from specs.facts.intervals import Intervals
from specs.facts.lanes import (
    OP_COLUMNS,
    LaneItems,
    Machine,
    Op,
    Stretch,
    each_lane,
    ends_as,
)
from specs.facts.progress import Begun, acknowledges, certainly_acknowledges
from specs.facts.segments import MS, NO_TEXT, NONE, Ints
from specs.history.row import Row
from specs.vocabulary import LISTENER_SUSPENDS, Key, Kind, Level, Outcome, Party

ID = "CMT-2"
TITLE = "a committed value is the end of a batch, in time"
STATEMENT = (
    "Every committed value is one more than the end of a finished batch (or the start), and comes within the persist "
    "interval."
)
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (ORDERLY, NO_RESET, NO_FILTER, NOT_PAUSED, BROKER_LIVES)
SOURCES = ("docs/sources.md#offsets", "docs/sources.md#orderly-loop")
KINDS = frozenset(
    {
        Kind.COMMIT,
        Kind.DELIVER,
        Kind.DEAD_LETTER,
        Kind.PULL,
        Kind.ADD,
        Kind.DROP,
        Kind.FETCH_OFFSET,
        Kind.RESET,
    }
)
SETTINGS = ("consume_from", "max_reconsume_times", "persist_first_ms", "persist_ms")
NEEDS = frozenset({Kind.ADD, Kind.COMMIT, Kind.DELIVER})
TOLD_OF_REFUSED_COMMITS = True
COLUMNS = OP_COLUMNS


@dataclass(frozen=True, slots=True)
class OddValue(Finding):
    start: Row
    commit: Row


@dataclass(frozen=True, slots=True)
class NotInTime(Finding):
    add: Row
    finished: Row
    later: Row
    bound_ms: int


class Ends:
    """The ends of finished batches of one stretch, ascending, each with the row that ended it."""

    __slots__ = ("_places", "at", "lane", "stretch")

    def __init__(self, lane: LaneItems, stretch: Stretch) -> None:
        self.lane = lane
        self.stretch = stretch
        self._places: Ints | None = None
        self.at = 0  # how many of them are committed

    @property
    def places(self) -> Ints:
        """The last row of every acknowledging call. Looked up when first asked for."""
        if self._places is None:
            digest, manual = self.lane.digest, self.stretch.first.manual
            _first, last = digest.bounds_of_calls(self.stretch)
            self._places = last[digest.rows.ended_as(Outcome.COMMIT)[last]] if manual else last
        return self._places

    def count_to(self, value: int) -> int:
        """How many of them end at or below the value."""
        offsets = self.lane.digest.rows.offset[self.places]
        return int(np.searchsorted(offsets, value, side="left"))

    def row(self, index: int) -> Op:
        (found,) = self.lane.digest.ops(self.places[index, None])
        return found

    @property
    def one_by_one(self) -> bool:
        """Is every message of the stretch a batch of its own, and finished by its call?"""
        return self.stretch.calls == self.stretch.rows and not self.stretch.first.manual

    def holds(self, value: int) -> bool:
        if not self.stretch.first.offset < value <= self.stretch.finished_to:
            return False
        return self.one_by_one or self.count_to(value) > self.count_to(value - 1)


class Incarnation(Begun):
    """One incarnation, the ends of its finished batches, and which of them wait for a commit."""

    __slots__ = (
        "calls",
        "committed",
        "dropped",
        "ends",
        "given_up",
        "last_call",
        "late",
        "owed",
        "sent",
        "stretches",
    )

    def __init__(self, add: Op | None = None) -> None:
        super().__init__(add)
        self.ends = Intervals()
        self.stretches: list[Ends] = []
        self.committed = NONE
        self.calls: dict[int, int] = {}
        self.last_call: Op | None = None
        self.owed: deque[Op | Ends] = deque()
        self.given_up: set[int] = set()  # ends of batches that it may have given up without a word
        # by a commit that will be refused: the last batch that it would have reported
        self.sent: dict[int, Op] = {}
        self.late = False
        self.dropped = False

    def oldest_owed(self) -> Op | None:
        """The row that ended the oldest batch that waits for its commit."""
        if not self.owed:
            return None
        head = self.owed[0]
        if isinstance(head, Op):
            return head
        return head.stretch.first if head.at == 0 and head.one_by_one else head.row(head.at)

    def forget_oldest(self) -> None:
        head = self.owed[0]
        if isinstance(head, Ends):
            head.at += 1
            if head.at < len(head.places):
                return
        self.owed.popleft()

    def committed_to(self, value: int, *, ask: bool) -> Op | None:
        """Batches that end at or below the value wait no longer, as far as the oldest goes.

        ask: which was the last of them?
        """
        last: Op | None = None
        while self.owed:
            head = self.owed[0]
            if isinstance(head, Op):
                if head.offset + 1 > value:
                    break
                last = head
                self.owed.popleft()
                continue
            if value < head.stretch.finished_to:
                before = head.at
                in_turn = value - head.stretch.first.offset
                head.at = max(head.at, in_turn if head.one_by_one else head.count_to(value))
                if ask and head.at > before:
                    last = head.row(head.at - 1)
                break
            if ask:
                last = head.row(-1)
            self.owed.popleft()
        return last

    def is_end(self, value: int) -> bool:
        return value in self.ends or any(each.holds(value) for each in reversed(self.stretches))


class Lane(Machine):
    """The incarnations of the lane, and those under which the offset was reset."""

    ENDS = ends_as([Kind.DELIVER, Kind.DEAD_LETTER, Kind.FETCH_OFFSET]) | ends_as(
        [Kind.COMMIT], [Outcome.REFUSED]
    )

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        config = self.config
        self.bound_us = (
            config.persist_first_ms + config.persist_ms + config.schedule_slack_ms
        ) * MS
        self.incarnations: dict[int, Incarnation] = {}
        self.void: set[int] = set()
        self.untold = self.untold_letters()
        declared = self.context.info.records or {}
        self.told_as_sent = Kind.COMMIT in declared.get(Level.CLIENT, ())

    def takes(self, stretch: Stretch) -> bool:
        mine = self.incarnations.get(stretch.first.incarnation)
        mine_inside = [op for op in self.inside if op.incarnation == stretch.first.incarnation]
        if mine is not None:
            finishes = stretch.finished_to > stretch.first.offset and not mine.dropped
            owes = finishes and mine.add is not None and not mine.late
            if owes and not stretch.first.has_mode:  # what is owed each of its calls says
                return False
            oldest = mine.oldest_owed()
            ends = Ends(self.lane, stretch) if finishes else None
            if oldest is None and owes and ends is not None:
                oldest = stretch.first if ends.one_by_one else ends.row(0)
            if oldest is not None:
                latest = max([stretch.latest_us, *(op.started for op in mine_inside)])
                if latest > oldest.over_us + self.bound_us:
                    return False
            if ends is not None:
                if ends.one_by_one:
                    mine.ends.add(stretch.first.offset + 1, stretch.finished_to + 1)
                else:
                    mine.stretches.append(ends)
                if owes:
                    mine.owed.append(ends)
            mine.last_call = stretch.last
        for op in self.inside:
            if op.incarnation != stretch.first.incarnation:
                self.begins(op)
        return True

    def begins(self, op: Op) -> None:
        if op.kind is Kind.DEAD_LETTER:
            self.untold = self.context.info.begins_late
        if op.kind is Kind.RESET:
            self.void.update(self.incarnations)
            self.incarnations.clear()
            return
        if op.incarnation == NO_TEXT:
            return
        if op.kind is Kind.ADD:
            self.incarnations[op.incarnation] = Incarnation(op)
            self.void.discard(op.incarnation)
            return
        mine = self.incarnations.get(op.incarnation)
        if mine is None:
            return
        if op.kind is Kind.DELIVER:
            if op.offset != NONE and op.offset > mine.calls.get(op.op, NONE):
                mine.calls[op.op] = op.offset
                mine.last_call = op
            self._works(mine, op)
        elif op.kind is Kind.PULL:
            self._works(mine, op)
        elif op.kind is Kind.COMMIT:
            self._committed(mine, op)
        elif op.kind is Kind.FETCH_OFFSET:
            mine.asked.add(op.place)
        elif op.kind is Kind.DROP:
            mine.dropped = True
            mine.owed.clear()

    def _works(self, mine: Incarnation, op: Op) -> None:
        """The incarnation is still at work: does a finished batch wait for its commit for too long?"""
        while mine.add is not None:
            finished = mine.oldest_owed()
            if finished is None or op.started <= finished.over_us + self.bound_us:
                return
            if (
                self.paused_since(op.client, finished.over_us)
                or self.broker_died_since(finished)
                or self._may_wait(finished, op)
            ):
                mine.forget_oldest()
                continue
            mine.late = True
            mine.owed.clear()
            self.stakes += 1  # no commit counts it
            bound = {"bound_ms": self.bound_us // MS}
            self.broken(NotInTime, bound, add=mine.add, finished=finished, later=op)

    def _may_wait(self, finished: Op, later: Op) -> bool:
        """May the commit be on its way, where it is seen only as it arrives?"""
        if self.told_as_sent:
            return False
        # Links suffer for the delay bound after a fault; here only what lasted beyond the batch's end counts.
        since_us = finished.over_us + self.config.delay_bound_ms * MS
        return self.was_disturbed(later.client, Kind.COMMIT, since_us, later.started)

    def _committed(self, mine: Incarnation, op: Op) -> None:
        if op.value == NONE:
            return
        refused = op.outcome is Outcome.REFUSED
        last = mine.committed_to(op.value, ask=refused)
        if refused and last is not None:
            mine.sent[op.place] = last
        if op.correction:
            mine.committed = op.value
        elif mine.start_row is not None and not refused:
            fits = op.value in (mine.start, mine.committed) or mine.is_end(op.value)
            mine.committed = op.value
            if mine.asked:
                return
            if not fits and self.untold and op.value in mine.given_up:
                return
            self.stakes += 1
            if not fits:
                self.broken(OddValue, start=mine.start_row, commit=op)

    def ends(self, op: Op) -> None:
        if op.incarnation == NO_TEXT:
            return
        mine = self.incarnations.get(op.incarnation)
        if op.kind is Kind.FETCH_OFFSET:
            if mine is None and op.incarnation not in self.void:
                mine = self.incarnations[op.incarnation] = Incarnation()
            if mine is not None:
                mine.looked_up(op, self.config)
        elif mine is None:
            return
        elif op.kind is Kind.DELIVER:
            self._call_ends(mine, op)
        elif op.kind is Kind.COMMIT:
            waits = mine.sent.pop(op.place, None)
            if waits is not None and not mine.dropped and not mine.late:
                mine.owed.appendleft(waits._replace(ended=op.ended))
        elif op.kind is Kind.DEAD_LETTER:
            last = mine.last_call
            of_last = op.outcome is Outcome.OK and last is not None and last.offset == op.offset
            if (
                of_last
                and last is not None
                and last.outcome in LISTENER_SUSPENDS
                and not last.manual
            ):
                mine.ends.add(op.offset + 1)

    def _call_ends(self, mine: Incarnation, op: Op) -> None:
        if op.offset == NONE or mine.calls.get(op.op) != op.offset:
            return
        del mine.calls[op.op]
        if acknowledges(op) and not mine.dropped:
            mine.ends.add(op.offset + 1)
            if mine.add is not None and not mine.late and certainly_acknowledges(op):
                mine.owed.append(op)
        elif self.may_be_given_up(op):
            mine.given_up.add(op.offset + 1)


judge = each_lane(Lane, KINDS, lease=False, asides=(Kind.PULL,))


def explain(found: OddValue | NotInTime) -> str:
    if isinstance(found, OddValue):
        start, commit = found.start, found.commit
        return (
            f"{who(commit)} committed {commit.value} for {commit.lane} at {at(commit)}; that is neither its start "
            f"({start_of(start)}) nor the end of a batch that it had finished since {at(start)}"
        )
    finished, later = found.finished, found.later
    waited = later.started_us - over_us(finished)
    return (
        f"{who(later)} finished offset {finished.queue_offset} of {later.lane} at {at(finished)} and was still at work "
        f"{ms(waited)} later, at {at(later)}, without having committed {(finished.queue_offset or 0) + 1}; "
        f"{found.bound_ms} ms are allowed"
    )
