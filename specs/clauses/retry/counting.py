"""How one incarnation counts the retries of a message: shared by the clauses of reconsume times.

The counter lives in the client and is counted in place, so these clauses look at one incarnation, at a batch of
one, at an original topic, and leave out what counts otherwise: a ROLLBACK replays without counting, and a dead
letter that was refused or unanswered counts once more.
"""

from __future__ import annotations

from collections.abc import Iterable

from specs.clauses.base import NOTHING, Context, Finding, Judge
from specs.history.row import Row
from specs.vocabulary import RETRY_PREFIX, Kind, Outcome

COUNTING_KINDS = frozenset({Kind.DELIVER, Kind.DEAD_LETTER, Kind.ADD, Kind.RESET})


class Counter:
    """One incarnation: its last delivery, the highest offset so far, and why it may count otherwise."""

    __slots__ = ("add", "dead_letter_failed", "highest", "last", "rolled_back")

    def __init__(self, add: Row | None = None) -> None:
        self.add = add
        self.last: Row | None = None
        self.highest = -1
        self.rolled_back = False
        self.dead_letter_failed = False  # of the last delivered offset


class CountingJudge(Judge):
    """Keeps the counters of one lane's incarnations, and asks its subclass about deliveries and dead letters."""

    __slots__ = ("counters",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.counters: dict[str, Counter] = {}

    def delivered(self, counter: Counter, row: Row) -> Iterable[Finding]:
        """A delivery begins; `counter` still holds what was before."""
        return NOTHING

    def given_up(self, counter: Counter, row: Row) -> Iterable[Finding]:
        """A dead letter of the last delivered message begins."""
        return NOTHING

    def begins(self, row: Row) -> Iterable[Finding]:
        name, offset = row.incarnation, row.queue_offset
        kind = row.kind
        if kind is Kind.RESET:
            self.counters.clear()
            return NOTHING
        if name is None:
            return NOTHING
        if kind is Kind.ADD:
            self.counters[name] = Counter(row)
            return NOTHING
        if offset is None or self.config.batch != 1 or (row.topic or "").startswith(RETRY_PREFIX):
            return NOTHING
        counter = self.counters.get(name)
        if counter is None:
            counter = self.counters[name] = Counter()
        if kind is Kind.DEAD_LETTER:
            last = counter.last
            if last is None or last.queue_offset != offset:
                return NOTHING
            found = NOTHING if counter.rolled_back else self.given_up(counter, row)
            if row.outcome is not Outcome.OK:
                counter.dead_letter_failed = True
            return found
        found = NOTHING if counter.rolled_back else self.delivered(counter, row)
        if counter.last is None or counter.last.queue_offset != offset:
            counter.dead_letter_failed = False
        counter.last = row
        if offset > counter.highest:
            counter.highest = offset
        return found

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.DELIVER and row.outcome is Outcome.ROLLBACK and row.incarnation is not None:
            counter = self.counters.get(row.incarnation)
            if counter is not None:
                counter.rolled_back = True
        return NOTHING
