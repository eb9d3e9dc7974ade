"""The retry counters of one lane's incarnations: what the twins of RTY-3 and RTY-5 share.

A counter lives in the client, so it is followed within one incarnation, at a batch of one, on an original topic. A
ROLLBACK replays without counting, and a dead letter that failed counts once more: both silence.
"""

from __future__ import annotations

from spark_checkers.lanes import LaneItems, Machine, Op, Stretch
from spark_checkers.rows import NO_TEXT, Findings
from specs.vocabulary import RETRY_PREFIX, Kind, Outcome

COUNTING_KINDS = (Kind.DELIVER, Kind.DEAD_LETTER, Kind.ADD, Kind.RESET)


class Counter:
    """One incarnation: its last delivery, the highest offset so far, and why it may count otherwise."""

    __slots__ = ("add", "dead_letter_failed", "highest", "last", "rolled_back")

    def __init__(self, add: Op | None = None) -> None:
        self.add = add
        self.last: Op | None = None
        self.highest = -1
        self.rolled_back = False
        self.dead_letter_failed = False


class Counting(Machine):
    """Follows the counters; a subclass says what a delivery and a dead letter must carry."""

    __slots__ = ("counters", "counts")

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.counters: dict[int, Counter] = {}
        self.counts = self.config.batch == 1 and not lane.topic.startswith(RETRY_PREFIX)

    def delivered(self, counter: Counter, op: Op) -> None:
        """A delivery begins; the counter still holds what was before."""

    def given_up(self, counter: Counter, op: Op) -> None:
        """A dead letter of the last delivered message begins."""

    def takes(self, stretch: Stretch) -> bool:
        if not self.counts:
            return True
        counter = self._counter(stretch.first.incarnation)
        if counter.last is not None and counter.last.offset == stretch.first.offset:
            return False
        counter.last = stretch.last
        counter.highest = max(counter.highest, stretch.stop - 1)
        counter.dead_letter_failed = False
        return True

    def _counter(self, incarnation: int) -> Counter:
        counter = self.counters.get(incarnation)
        if counter is None:
            counter = self.counters[incarnation] = Counter()
        return counter

    def begins(self, op: Op) -> None:
        if op.kind is Kind.RESET:
            self.counters.clear()
        elif op.incarnation == NO_TEXT:
            return
        elif op.kind is Kind.ADD:
            self.counters[op.incarnation] = Counter(op)
        elif op.offset >= 0 and self.counts:
            counter = self._counter(op.incarnation)
            if op.kind is Kind.DELIVER:
                self._deliver(counter, op)
            elif counter.last is not None and counter.last.offset == op.offset:
                if not counter.rolled_back:
                    self.given_up(counter, op)
                counter.dead_letter_failed |= op.outcome is not Outcome.OK

    def _deliver(self, counter: Counter, op: Op) -> None:
        if not counter.rolled_back:
            self.delivered(counter, op)
        if counter.last is None or counter.last.offset != op.offset:
            counter.dead_letter_failed = False
        counter.last = op
        counter.highest = max(counter.highest, op.offset)

    def ends(self, op: Op) -> None:
        if op.kind is Kind.DELIVER and op.outcome is Outcome.ROLLBACK and op.incarnation in self.counters:
            self.counters[op.incarnation].rolled_back = True
