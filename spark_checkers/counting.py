"""The retry counters of one lane's incarnations: what the twins of RTY-3 and RTY-5 share.

A counter lives in the client, so it is followed within one incarnation, for each message by itself, on an original
topic. A manual ROLLBACK replays without counting, and a dead letter that failed counts once more: both silence. What
may have been a manual ROLLBACK is taken for one if the next call begins no further.
"""

from __future__ import annotations

from spark_checkers.findings import Findings
from spark_checkers.lanes import (
    LaneItems,
    Machine,
    Op,
    Stretch,
    asks_again,
    ends_as,
    may_put_back,
    may_put_back_unseen,
)
from spark_checkers.segments import NO_TEXT
from specs.vocabulary import DLQ_PREFIX, LISTENER_SUSPENDS, RETRY_PREFIX, Kind, Outcome

COUNTING_KINDS = (Kind.DELIVER, Kind.DEAD_LETTER, Kind.ADD, Kind.RESET)


class Try:
    """One call: its messages by offset, and those of them whose dead letter failed. whole: nothing of it is cut off."""

    __slots__ = ("failed", "number", "ops", "whole")

    def __init__(self, number: int, whole: bool) -> None:
        self.number = number
        self.whole = whole
        self.ops: dict[int, Op] = {}
        self.failed: set[int] = set()


class Counter:
    """One incarnation: of every message that may come again its last try, how far it is, and whether it rolled back."""

    __slots__ = ("add", "highest", "latest", "rolled_back", "tries", "unsure")

    def __init__(self, add: Op | None = None) -> None:
        self.add = add
        self.tries: dict[int, Try] = {}
        self.latest: Try | None = None
        self.highest = -1
        self.rolled_back = False
        self.unsure = -1  # the highest offset of what may have been a ROLLBACK, until the next call

    def goes_on(self, offset: int) -> None:
        """The next call begins: had the one before put anything back?"""
        self.rolled_back |= offset <= self.unsure
        self.unsure = -1

    def begin(self, number: int) -> Try:
        """The try of this number: the latest one, or a new one, with which what the latest finished is forgotten."""
        if self.latest is not None and self.latest.number == number:
            return self.latest
        if self.latest is not None:
            for offset, op in self.latest.ops.items():
                if self.tries.get(offset) is self.latest and not asks_again(op):
                    del self.tries[offset]
        self.latest = Try(number, self.latest is not None or self.add is not None)
        return self.latest


class Counting(Machine):
    """Follows the counters; a subclass says what a delivery and a dead letter must carry."""

    ENDS = ends_as([Kind.DELIVER], [Outcome.ROLLBACK])

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.counters: dict[int, Counter] = {}
        self.counts = not lane.topic.startswith((RETRY_PREFIX, DLQ_PREFIX))
        # Of a stretch only the last row is known: not enough where a call may hold more and any may be given up.
        self.whole = self.config.batch == 1 or Kind.DEAD_LETTER not in lane.kinds

    def delivered(self, counter: Counter, last: Try | None, op: Op) -> None:
        """A delivery begins; last: the try of its message before."""

    def given_up(self, last: Try, op: Op) -> None:
        """A dead letter of a message begins, of which this was the last try."""

    def exhausted(self, op: Op) -> bool:
        """Was the message delivered for the last time allowed, in vain?"""
        return (
            0 <= self.config.max_reconsume_times <= op.reconsume and op.outcome in LISTENER_SUSPENDS
        )

    def complete(self, call: Try) -> bool:
        """Is the call there as a whole: not the first one of an open world's history, or full?"""
        return call.whole or self.context.info.closed_world or len(call.ops) >= self.config.batch

    def takes(self, stretch: Stretch) -> bool:
        if not self.counts:
            return True
        counter = self._counter(stretch.first.incarnation)
        if counter.latest is not None and counter.latest.number == stretch.first.op:
            return False
        counter.goes_on(stretch.first.offset)
        again = counter.highest >= stretch.first.offset and any(
            stretch.first.offset <= offset < stretch.stop for offset in counter.tries
        )
        if again or not self.whole:
            return False
        if stretch.calls > 1:
            counter.begin(stretch.first.op)
        last = counter.begin(stretch.last.op)
        last.ops[stretch.last.offset] = stretch.last
        counter.tries[stretch.last.offset] = last
        counter.highest = max(counter.highest, stretch.stop - 1)
        return True

    def _counter(self, incarnation: int) -> Counter:
        return self.counters.setdefault(incarnation, Counter())

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
            elif op.offset in counter.tries:
                last = counter.tries[op.offset]
                if not counter.rolled_back:
                    self.given_up(last, op)
                if op.outcome is not Outcome.OK:
                    last.failed.add(op.offset)

    def _deliver(self, counter: Counter, op: Op) -> None:
        if counter.latest is None or counter.latest.number != op.op:
            counter.goes_on(op.offset)
        now = counter.begin(op.op)
        if not counter.rolled_back:
            self.delivered(counter, counter.tries.get(op.offset), op)
        now.ops[op.offset] = op
        counter.tries[op.offset] = now
        counter.highest = max(counter.highest, op.offset)
        if may_put_back_unseen(op):
            counter.unsure = max(counter.unsure, op.offset)

    def ends(self, op: Op) -> None:
        if (
            op.kind is Kind.DELIVER
            and may_put_back(op)
            and op.incarnation != NO_TEXT
            and op.incarnation in self.counters
        ):
            counter = self.counters[op.incarnation]
            if op.manual:
                counter.rolled_back = True
            else:
                counter.unsure = max(counter.unsure, op.offset)
