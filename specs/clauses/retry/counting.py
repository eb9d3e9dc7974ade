"""How one incarnation counts the retries of a message: shared by the clauses of reconsume times.

The counter lives in the client and is counted in place, so these clauses look at one incarnation, and at original
topics: a copy in a retry topic, or among the dead letters, was stored with a counter of its own. They leave out what
counts otherwise: a manual ROLLBACK replays without counting (in auto mode a ROLLBACK acknowledges), and a dead letter
that was refused or unanswered counts once more. Of a ROLLBACK of which nobody says in which mode it was, and of a call
of which nobody saw the result, nor says that it was in auto mode, the next call tells: where the lane goes on beyond
it, it has put nothing back.

Each message of a call is counted by itself. What asked to come again is remembered until it does, whatever comes in
between.
"""

from __future__ import annotations

from collections.abc import Iterable

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.rows import (
    asks_again,
    is_copy_topic,
    is_manual,
    may_put_back,
    may_put_back_unseen,
)
from specs.history.row import Row
from specs.vocabulary import LISTENER_SUSPENDS, Kind, Outcome

COUNTING_KINDS = frozenset({Kind.DELIVER, Kind.DEAD_LETTER, Kind.ADD, Kind.RESET})


class Call:
    """The rows of one listener call, and of which of its messages a dead letter failed since.

    whole: no row of it can be cut off, where the history begins.
    """

    __slots__ = ("failed", "op", "rows", "whole")

    def __init__(self, op: int, whole: bool) -> None:
        self.op = op
        self.whole = whole
        self.rows: dict[int, Row] = {}
        self.failed: set[int] = set()


class Counter:
    """One incarnation: the last call of each message that may come again, and the highest offset so far.

    unsure: the highest message of a call that may have been a manual ROLLBACK, until the next call.
    """

    __slots__ = ("add", "calls", "current", "highest", "rolled_back", "unsure")

    def __init__(self, add: Row | None = None) -> None:
        self.add = add
        self.calls: dict[int, Call] = {}
        self.current: Call | None = None
        self.highest = -1
        self.rolled_back = False
        self.unsure: int | None = None

    def may_roll_back(self, offset: int) -> None:
        """The call of this message may have put back all that was taken."""
        self.unsure = max(offset, self.unsure or 0)

    def goes_on(self, offset: int) -> None:
        """A call begins: did the one before it put anything back?"""
        if self.unsure is not None:
            self.rolled_back = self.rolled_back or offset <= self.unsure
            self.unsure = None


class CountingJudge(Judge):
    """Keeps the counters of one lane's incarnations, and asks its subclass about deliveries and dead letters."""

    __slots__ = ("counters",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.counters: dict[str, Counter] = {}

    def delivered(self, counter: Counter, call: Call | None, row: Row) -> Iterable[Finding]:
        """A delivery begins. call: the last one of its message, which asked for it again, if there was one."""
        return NOTHING

    def given_up(self, call: Call, row: Row) -> Iterable[Finding]:
        """A dead letter begins. call: the last one of its message."""
        return NOTHING

    def begins(self, row: Row) -> Iterable[Finding]:
        name, offset = row.incarnation, row.queue_offset
        if row.kind is Kind.RESET:
            self.counters.clear()
            return NOTHING
        if name is None:
            return NOTHING
        if row.kind is Kind.ADD:
            self.counters[name] = Counter(row)
            return NOTHING
        if offset is None or is_copy_topic(row.topic):
            return NOTHING
        counter = self.counters.get(name)
        if counter is None:
            counter = self.counters[name] = Counter()
        return (
            self._letter(counter, row, offset)
            if row.kind is Kind.DEAD_LETTER
            else self._call(counter, row, offset)
        )

    def _letter(self, counter: Counter, row: Row, offset: int) -> Iterable[Finding]:
        call = counter.calls.get(offset)
        if call is None:
            return NOTHING
        found = NOTHING if counter.rolled_back else self.given_up(call, row)
        if row.outcome is not Outcome.OK:
            call.failed.add(offset)
        return found

    def _call(self, counter: Counter, row: Row, offset: int) -> Iterable[Finding]:
        current = counter.current
        if current is None or current.op != row.op_id:
            counter.goes_on(offset)
            if current is not None:
                for each, before in current.rows.items():
                    if not asks_again(before) and counter.calls.get(each) is current:
                        del counter.calls[each]  # it was finished
            whole = self.context.info.closed_world  # then no call is cut off at its front
            begun = whole or current is not None or counter.add is not None
            current = counter.current = Call(row.op_id, begun)
        found = (
            NOTHING
            if counter.rolled_back
            else self.delivered(counter, counter.calls.get(offset), row)
        )
        counter.calls[offset] = current
        current.rows[offset] = row
        counter.highest = max(counter.highest, offset)
        if may_put_back_unseen(row):
            counter.may_roll_back(offset)  # nobody may ever see it end
        return found

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.DELIVER and may_put_back(row):
            counter = self.counters.get(row.incarnation or "")
            if counter is not None and is_manual(row):
                counter.rolled_back = True
            elif counter is not None and row.queue_offset is not None:
                counter.may_roll_back(row.queue_offset)
        return NOTHING

    def is_whole(self, call: Call) -> bool:
        """Are all rows of the call in the history? Of one that is full none can be missing."""
        return call.whole or len(call.rows) >= self.config.batch

    def is_exhausted(self, row: Row) -> bool:
        """Was the message delivered for the last time allowed, in vain?"""
        limit, times = self.config.max_reconsume_times, row.reconsume_times
        return (
            limit >= 0 and times is not None and times >= limit and row.outcome in LISTENER_SUSPENDS
        )
