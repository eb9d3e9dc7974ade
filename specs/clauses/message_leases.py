"""Hand-outs of the messages of one lane, and which of their leases certainly live: for clauses about RECEIVE rows.

A message is handed out somewhere between the question and the answer, so its lease lasts at least until the question's
begin plus the lease: `lease_until_us` of the row, moved by each renewal that was answered. It ends sooner by whatever
may have acknowledged or released the message, under whatever lease: a server that does not fence takes a late request
of a former holder for the present one's, also one that is on its way while the message is finished, or handed out. One
that was refused changed nothing. And it may end with the holder's
connection: where the holder died, left or stood still since, or anything was injected, nothing is certain.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.links import FOR_EVER_US
from specs.clauses.premises import Premise
from specs.clauses.rows import ended_before, over_us
from specs.clauses.words import MS
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome

CONNECTED = Premise(
    "connected",
    "the holder neither died, left nor stood still since, and nothing was injected: some systems end a lease with its "
    "connection",
    told_by=frozenset({Kind.CRASH, Kind.LEAVE, Kind.PAUSE, Kind.FAULT}),
)
SPARE_US = MS
"""A server that counts in whole milliseconds may end a lease as much sooner."""
ENDS_A_LEASE = frozenset({Kind.ACK, Kind.RELEASE})
OF_LEASES = frozenset({Kind.RECEIVE, Kind.ACK, Kind.RELEASE, Kind.RENEW})


@dataclass(slots=True)
class Held:
    """A hand-out. until_us: its lease certainly lasts so long, if nothing ends it. is_over: something may have."""

    row: Row
    until_us: int
    is_over: bool = False


class HandOuts:
    """The last hand-out of each message of a lane that nobody has certainly acknowledged."""

    __slots__ = ("bound_us", "context", "last", "under_way")

    def __init__(self, context: Context) -> None:
        self.context = context
        self.bound_us = context.info.clock_bound_us
        self.last: dict[int, Held] = {}
        self.under_way: dict[int, int] = {}
        """Of each message until when a request may be applied that ends a lease: also of those that are finished."""

    def asked(self, row: Row) -> None:
        """A request about a message begins."""
        offset = row.queue_offset
        if offset is None or row.outcome is Outcome.REFUSED:
            return
        held = self.last.get(offset)
        if row.kind in ENDS_A_LEASE:
            until_us = max(self.under_way.get(offset, 0), applied_until(self.context, row))
            self.under_way[offset] = until_us
            if held is not None:
                held.is_over = True
        elif row.kind is Kind.RENEW and held is not None:
            new_us = row.started_us if row.lease_until_us is None else row.lease_until_us
            held.until_us = min(held.until_us, new_us)

    def answered(self, row: Row) -> None:
        """A request about a message ended."""
        offset = row.queue_offset
        if offset is None or row.outcome is not Outcome.OK:
            return
        held = self.last.get(offset)
        if row.kind is Kind.ACK:
            self.last.pop(offset, None)
        elif row.kind is Kind.RENEW and held is not None and held.row.lease_id == row.lease_id:
            held.until_us = held.until_us if row.lease_until_us is None else row.lease_until_us

    def handed_out(self, row: Row) -> Held | None:
        """A message was handed out: remember it. The hand-out before, where one is known."""
        offset = row.queue_offset
        if offset is None or row.outcome is not Outcome.OK:
            return None
        before = self.last.get(offset)
        until_us = FOR_EVER_US if row.lease_until_us is None else row.lease_until_us
        applied_us = self.under_way.get(offset)
        late = applied_us is not None and applied_us + self.bound_us >= row.started_us
        self.last[offset] = Held(row, until_us, is_over=late)
        return before

    def lives(self, held: Held, row: Row) -> bool:
        """Did the lease, begun by then, certainly live at the end of `row`?"""
        if held.is_over or over_us(row) + self.bound_us + SPARE_US >= held.until_us:
            return False
        return not may_be_cut(self.context, held.row)

    def meet(self, held: Held, row: Row) -> bool:
        """Was the message, handed out now, certainly handed out while the lease before it lived?

        Of two that were asked for together either may be the first.
        """
        if not self.lives(held, row):
            return False
        if ended_before(held.row, row):
            return True
        mine = self.last[row.queue_offset or 0]
        return self.lives(mine, held.row)


def applied_until(context: Context, row: Row) -> int:
    """The last moment at which the server may have done what it was asked."""
    if row.outcome is Outcome.OK and row.ended_us is not None:
        return row.ended_us
    bound_us = context.config.delay_bound_ms * MS
    return context.may_arrive_until(row, over_us(row) + bound_us)


def may_be_cut(context: Context, row: Row) -> bool:
    """May the lease of a hand-out have ended with its holder's connection, or with the server?"""
    client, since_us = row.client_id, row.started_us - context.info.clock_bound_us
    return (
        context.broker_died_since(row.broker, row)
        or context.client_died_since(client, row)
        or context.paused_since(client, since_us)
        or any(
            each.seq_end is None or each.seq_end > row.seq_begin
            for each in context.left.get(client or "", ())
        )
        or context.fault_between(since_us, FOR_EVER_US, client, row.broker)
    )


class HandOutsJudge(Judge):
    """Of a clause about a message that is handed out while the lease of its last hand-out lives."""

    __slots__ = ("handed",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.handed = HandOuts(context)

    def begins(self, row: Row) -> Iterable[Finding]:
        self.handed.asked(row)
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.kind is not Kind.RECEIVE:
            self.handed.answered(row)
            return NOTHING
        before = self.handed.handed_out(row)
        if before is None or not self.is_at_stake(before.row, row):
            return NOTHING
        self.opportunities += 1
        return (self.found(before.row, row),) if self.handed.meet(before, row) else NOTHING

    def is_at_stake(self, first: Row, second: Row) -> bool:
        """Does the clause speak of these two hand-outs of a message?"""
        return True

    @abstractmethod
    def found(self, first: Row, second: Row) -> Finding:
        """The clause's own finding."""
