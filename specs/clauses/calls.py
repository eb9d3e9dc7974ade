"""What the calls of an incarnation put back: what the clauses about repeats share.

A call that asks for its messages again puts them back. Each of them stays *owed* until it was delivered again, or its
dead letter was acknowledged; calls in between, of whatever other messages, change nothing about that. So a batch of
which only a part comes again is not forgotten with that part. That calls overlap is ORD-3's matter. What began before
an ADD of its incarnation, or a RESET, is of an earlier life and does not count when it ends.
"""

from __future__ import annotations

from collections.abc import Iterable

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.rows import ended_before, may_put_back_unseen
from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import LISTENER_SUSPENDS, Kind, Outcome

CALL_KINDS = frozenset({Kind.DELIVER, Kind.DEAD_LETTER, Kind.ADD, Kind.RESET})


class Calls:
    """One incarnation: the rows of its last call, what it owes, and the dead letters that nobody acknowledged.

    owed: offset → the delivery that put the message back. failed: offset → the message's last dead letter, from its
    begin on. given_up: the offsets with an acknowledged dead letter since their last delivery. begun: was anything seen
    before the last call, which therefore is not cut off at its front? since: what began earlier is not of it. unsure:
    has a call begun that may have been a manual ROLLBACK, as nobody knows how it ended?
    """

    __slots__ = ("begun", "failed", "given_up", "op", "owed", "rows", "since", "unsure")

    def __init__(self, op: int, since: int, *, begun: bool = False) -> None:
        self.op = op
        self.since = since
        self.begun = begun
        self.unsure = False
        self.rows: list[Row] = []
        self.owed: dict[int, Row] = {}
        self.given_up: set[int] = set()
        self.failed: dict[int, Row] = {}

    def certainly_owed(self, config: Config) -> list[Row]:
        """What is owed, ascending, but for what may have been given up where nobody recorded it.

        A message whose retries were used up, and of whose dead letter there is no row, may have been given up by a
        client that is watched from outside: that is DLQ-1's business, by reading the dead letters.
        """
        return [
            self.owed[offset]
            for offset in sorted(self.owed)
            if offset in self.failed or not may_be_given_up(self.owed[offset], config)
        ]

    def rolled_back(self, config: Config) -> None:
        """A ROLLBACK replays what was given up as well, seen or unseen, and after a pause of its own."""
        for offset, row in list(self.owed.items()):
            if offset not in self.failed and may_be_given_up(row, config):
                del self.owed[offset]

    def passed_by(self, offset: int) -> None:
        """Something beyond was delivered: what is owed below was told about, once."""
        for each in [each for each in self.owed if each < offset]:
            del self.owed[each]


def may_be_given_up(row: Row, config: Config) -> bool:
    """Could this delivery, by what is known of its counter, have been the last one allowed?"""
    limit, times = config.max_reconsume_times, row.reconsume_times
    return limit >= 0 and (times is None or times >= limit)


class CallsJudge(Judge):
    """Keeps the calls of each incarnation of a lane, and asks its subclass what a delivery means after them."""

    __slots__ = ("calls",)

    PUTS_BACK: frozenset[Outcome] = LISTENER_SUSPENDS
    """The results of a call that put its messages back, of those that the clause is about."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.calls: dict[str, Calls] = {}

    def due(self, calls: Calls, row: Row) -> list[Row]:
        """What is certainly owed as the row begins: nothing below what the broker keeps, as far as it has announced."""
        kept = self.context.kept_from.get(row.queue, 0)
        owed = calls.certainly_owed(self.config)
        return [each for each in owed if (each.queue_offset or 0) >= kept]

    def next_call(self, calls: Calls, row: Row) -> Iterable[Finding]:
        """The first row of a call begins; `calls` still holds the call before, which is over."""
        return NOTHING

    def same_call(self, calls: Calls, row: Row) -> Iterable[Finding]:
        """A further row of the call begins, or a call that overlaps the one before."""
        return NOTHING

    def begins(self, row: Row) -> Iterable[Finding]:
        match row.kind:
            case Kind.RESET:
                self.calls.clear()
            case Kind.ADD if row.incarnation is not None:
                self.calls[row.incarnation] = Calls(-1, row.seq_begin, begun=True)
            case Kind.DELIVER:
                return self._delivered(row)
            case Kind.DEAD_LETTER if row.incarnation is not None and row.queue_offset is not None:
                calls = self.calls.get(row.incarnation)
                if calls is None:
                    calls = self.calls[row.incarnation] = Calls(
                        -1, row.seq_begin, begun=self.context.info.closed_world
                    )
                if row.outcome is not Outcome.OK and row.queue_offset not in calls.given_up:
                    calls.failed[row.queue_offset] = row
            case _:
                pass
        return NOTHING

    def _delivered(self, row: Row) -> Iterable[Finding]:
        offset = row.queue_offset
        if row.incarnation is None or offset is None:
            return NOTHING
        calls = self.calls.get(row.incarnation)
        if calls is None:
            calls = self.calls[row.incarnation] = Calls(
                row.op_id, row.seq_begin, begun=self.context.info.closed_world
            )
        is_next = row.op_id != calls.op and all(ended_before(each, row) for each in calls.rows)
        found = self.next_call(calls, row) if is_next else self.same_call(calls, row)
        if row.op_id != calls.op:
            calls.begun = calls.begun or bool(calls.rows)
            calls.op = row.op_id
            calls.rows.clear()
        calls.rows.append(row)
        calls.owed.pop(offset, None)
        calls.failed.pop(offset, None)
        calls.given_up.discard(offset)
        calls.unsure |= may_put_back_unseen(row)
        if calls.unsure:
            calls.rolled_back(self.config)
        return found

    def ends(self, row: Row) -> Iterable[Finding]:
        calls = self.calls.get(row.incarnation or "")
        offset = row.queue_offset
        if calls is None or offset is None or row.seq_begin < calls.since:
            return NOTHING
        if row.kind is Kind.DELIVER:
            if row.outcome is Outcome.ROLLBACK:
                calls.rolled_back(self.config)
            if row.outcome in self.PUTS_BACK:
                calls.owed[offset] = row
            if calls.unsure:
                calls.rolled_back(self.config)
        elif row.kind is Kind.DEAD_LETTER and row.outcome is Outcome.OK:
            calls.owed.pop(offset, None)
            calls.failed.pop(offset, None)
            calls.given_up.add(offset)
        return NOTHING
