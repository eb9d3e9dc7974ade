"""Hand-outs of the messages of one lane, and which of their leases certainly live: for clauses about RECEIVE rows.

A message is handed out somewhere between the question and the answer, so its lease lasts at least until the question's
begin plus the lease: `lease_until_us` of the row, moved by each renewal that was answered. It ends sooner by whatever
may have acknowledged or released the message, under whatever lease: a server that does not fence takes a late request
of a former holder for the present one's, also one that is on its way while the message is finished, or handed out. One
that was refused changed nothing. And it may end with the holder's
connection: where the holder died, left or stood still since, or anything was injected, nothing is certain.

A request that names its message by id alone speaks of the offset that was handed out with that id, where that is
certain (`Names`). Else, and where it names nothing, it may speak of any message of the lane.
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
ABOUT_A_MESSAGE = frozenset({Kind.ACK, Kind.RELEASE, Kind.RENEW, Kind.DEAD_LETTER})
"""Kinds of requests that name their message by its offset, or by its id."""


def may_be_any(row: Row) -> bool:
    """May a request of these kinds be about any message of its lane? A renewal that names none is of the lane."""
    names_none = row.queue_offset is None
    return names_none and (row.kind is not Kind.RENEW or row.message_id is not None)


class Names:
    """The offsets of a lane's messages by their ids. A request that names an id alone is shown with the offset.

    So it is where, when it begins, one offset and no other had been handed out with that id, and each hand-out so far
    told both: a message that was sent twice lies at two offsets.
    """

    __slots__ = ("_is_told", "_offsets", "_under_way")

    def __init__(self) -> None:
        self._offsets: dict[str, int | None] = {}
        self._is_told = True
        self._under_way: dict[int, Row] = {}

    def begins(self, row: Row) -> Row:
        is_silent = row.kind in ABOUT_A_MESSAGE and row.queue_offset is None
        if not is_silent or row.message_id is None or not self._is_told:
            return row
        offset = self._offsets.get(row.message_id)
        if offset is None:
            return row
        named = row._replace(queue_offset=offset)
        if row.seq_end is not None:
            self._under_way[row.seq_begin] = named
        return named

    def ends(self, row: Row) -> Row:
        if row.kind is not Kind.RECEIVE:
            return self._under_way.pop(row.seq_begin, row)
        if row.outcome is Outcome.OK:
            message, offset = row.message_id, row.queue_offset
            if message is None or offset is None:
                self._is_told = False
            elif self._offsets.setdefault(message, offset) != offset:
                self._offsets[message] = None
        return row


@dataclass(slots=True)
class Held:
    """A hand-out. until_us: its lease certainly lasts so long, if nothing ends it. is_over: something may have."""

    row: Row
    until_us: int
    is_over: bool = False


class HandOuts:
    """The last hand-out of each message of a lane that nobody has certainly acknowledged."""

    __slots__ = ("any_until_us", "bound_us", "context", "last", "over_before", "under_way")

    def __init__(self, context: Context) -> None:
        self.context = context
        self.bound_us = context.info.clock_bound_us
        self.last: dict[int, Held] = {}
        self.under_way: dict[int, int] = {}
        """Of each message until when a request may be applied that ends a lease: also of those that are finished."""
        self.over_before = -1
        """Where the last request began that may be about any message: it may have ended each lease before."""
        self.any_until_us = -FOR_EVER_US
        """Until when such a request may be applied."""

    def asked(self, row: Row) -> None:
        """A request about a message begins."""
        offset = row.queue_offset
        if row.outcome is Outcome.REFUSED or row.kind is Kind.RECEIVE:
            return
        if offset is None:
            if may_be_any(row):
                self.over_before = row.seq_begin
                self.any_until_us = max(self.any_until_us, applied_until(self.context, row))
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
        applied_us = max(self.under_way.get(offset, -FOR_EVER_US), self.any_until_us)
        late = applied_us + self.bound_us >= row.started_us
        self.last[offset] = Held(row, until_us, is_over=late)
        return before

    def is_over(self, held: Held) -> bool:
        """May something have ended the lease?"""
        return held.is_over or (held.row.seq_end or 0) < self.over_before

    def lives(self, held: Held, row: Row) -> bool:
        """Did the lease, begun by then, certainly live at the end of `row`?"""
        if self.is_over(held) or over_us(row) + self.bound_us + SPARE_US >= held.until_us:
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

    __slots__ = ("handed", "names")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.handed = HandOuts(context)
        self.names = Names()

    def begins(self, row: Row) -> Iterable[Finding]:
        self.handed.asked(self.names.begins(row))
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        row = self.names.ends(row)
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
