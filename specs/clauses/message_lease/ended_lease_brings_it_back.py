"""A message whose lease has ended is handed out when somebody asks for messages of its lane.

Judged by questions that brought nothing (a RECEIVE that was refused). One refutes that was begun when, for longer than
a timer may be late, the lease had certainly ended and nothing else of the lane may have been lent or put off; but only
once each other question that was under way meanwhile has ended, and none of them brought any message of the lane, or
may have: a server that hands them out one after the other may let this one wait.

A lease ends by its time, counted from the answer, or after the pause for which an answered release under it put the
message back, or by an acknowledgement under it that was answered, later than the hand-out. It is taken for as long as
the hand-out says, and as the configuration does at least; whatever may have renewed it makes it longer, by as much at
least. What was not answered may still be done while a request may be under way: such a question may have been handed
any message, for a lease more, the longest of those lent, and so may one of a member that died. Where a release does not
say for how long, its message is put off until it is acknowledged.

At stake is each message that comes again. Says nothing of a message that somebody may have acknowledged, that was given
up, or that was handed out as often as it may be, nor of a lease that has no end in time, which lasts until an
acknowledgement or a release, nor of a lane in which a request may be of any message
(`specs.clauses.message_leases`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from specs.clauses.context import Context
from specs.clauses.intervals import Intervals
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.links import FOR_EVER_US
from specs.clauses.message_leases import Names, applied_until, may_be_any
from specs.clauses.premises import (
    BROKER_LIVES,
    BROKER_NOT_PAUSED,
    NO_RESET,
    NO_WALL_CLOCK_STEP,
    NOT_REMOVED,
    Premise,
)
from specs.clauses.rows import over_us
from specs.clauses.words import MS, at, ms, who
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Level, Outcome, Party

ID = "PML-5"
TITLE = "an ended lease brings the message back"
STATEMENT = (
    "A message whose lease has ended, by its time or by a release, is handed out again within the bound while "
    "somebody asks for messages of its lane."
)
PARTY = Party.BROKER
KEY = Key.LANE
UNDISTURBED = Premise(
    "undisturbed",
    "nothing was injected since the hand-out: what went to whoever asked may have been lost on its way",
    told_by=frozenset({Kind.FAULT}),
)
PREMISE = (
    NO_WALL_CLOCK_STEP,
    BROKER_LIVES,
    BROKER_NOT_PAUSED,
    NOT_REMOVED,
    NO_RESET,
    UNDISTURBED,
)
SOURCES = ("docs/sources.md#leases-of-messages",)
KINDS = frozenset({Kind.RECEIVE, Kind.ACK, Kind.RELEASE, Kind.RENEW, Kind.DEAD_LETTER})
LEVELS = frozenset(Level)
NEEDS = frozenset({Kind.RECEIVE, Kind.ACK})
SETTINGS = ("broker_lease_ms", "max_reconsume_times")
CONCLUDES_FROM_ABSENCE = True
LOOKS_BACK = True


@dataclass(frozen=True, slots=True)
class NotBroughtBack(Finding):
    """released: the answered release that ended the lease; None where its time did. asked: the question in vain."""

    handed: Row
    released: Row | None
    asked: Row


@dataclass(slots=True)
class Lent:
    """A hand-out. free_us: by then its lease, of lease_us, has certainly ended. is_owed: it has to come again."""

    row: Row
    lease_us: int
    free_us: int
    is_owed: bool
    released: Row | None = None


@dataclass(slots=True)
class Suspicion:
    """A question in vain, and those that were under way then and may have brought a message."""

    lent: Lent
    released: Row | None
    asked: Row
    others: set[int] = field(default_factory=set)


class LaneJudge(Judge):
    """lent: the last hand-out of each message that may be unfinished. over: messages that may be finished.

    put_off: of each message until when requests, or an earlier lease, may keep it away. stray_us: likewise of those
    that nobody was handed. lost_us: until when a message may have been handed out of which nobody knows. open:
    questions under way. ready: those in vain that began when nothing was lent. handed: messages that were handed out,
    and answered_at: where the last answer came that brought one. suspicions: by the hand-out's begin.
    """

    __slots__ = (
        "answered_at",
        "bound_us",
        "delay_us",
        "handed",
        "lease_us",
        "lent",
        "lost_us",
        "names",
        "open",
        "over",
        "put_off",
        "ready",
        "stray_us",
        "suspicions",
    )

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        config = self.config
        self.lease_us = config.broker_lease_ms * MS
        self.bound_us = config.schedule_slack_ms * MS + context.info.clock_bound_us
        self.delay_us = config.delay_bound_ms * MS
        self.lent: dict[int, Lent] = {}
        self.over = Intervals()
        self.names = Names()
        self.put_off: dict[int, int] = {}
        self.open: dict[int, Row] = {}
        self.stray_us = self.lost_us = -FOR_EVER_US
        self.ready: set[int] = set()
        self.handed = Intervals()
        self.answered_at = 0
        self.suspicions: dict[int, Suspicion] = {}

    def begins(self, row: Row) -> Iterable[Finding]:
        row = self.names.begins(row)
        offset = row.queue_offset
        if row.kind is Kind.RECEIVE:
            self.open[row.seq_begin] = row
            if row.outcome is Outcome.REFUSED and self._is_free(row):
                self.ready.add(row.seq_begin)
        elif row.outcome is Outcome.REFUSED:
            return NOTHING
        elif offset is None:
            if may_be_any(row):
                self.stray_us = FOR_EVER_US
        elif row.kind in (Kind.ACK, Kind.DEAD_LETTER):
            self._may_be_over(offset)
        else:
            self._puts_off(row, offset)
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        row = self.names.ends(row)
        offset = row.queue_offset if row.outcome is Outcome.OK else None
        if row.kind is Kind.ACK and offset is not None:
            lent = self.lent.get(offset)
            if lent is not None and lent.row.lease_id == row.lease_id:
                del self.lent[offset]
        if row.kind is not Kind.RECEIVE:
            return NOTHING
        self.open.pop(row.seq_begin, None)
        if row.outcome is Outcome.REFUSED:
            self._in_vain(row)
        elif offset is None:
            self.lost_us = max(self.lost_us, over_us(row) + self.delay_us)
        found = self._resolved(row)
        if offset is not None:
            self._lends(row, offset)
        return found

    # ------------------------------------------------------------ what is lent

    def _lends(self, row: Row, offset: int) -> None:
        self.handed.add(offset)
        self.answered_at = row.seq_end or row.seq_begin
        before, limit = self.lent.get(offset), self.config.max_reconsume_times
        if before is not None:
            self.opportunities += before.is_owed
            self._keeps_away(offset, before.free_us)
        times, until_us = row.reconsume_times, row.lease_until_us
        is_last = limit >= 0 and (times is None or times >= limit)
        is_owed = until_us is not None and not is_last and offset not in self.over
        lease_us = max(self.lease_us, (until_us or 0) - row.started_us)
        free_us = FOR_EVER_US if until_us is None else over_us(row) + lease_us
        self.lent[offset] = Lent(row, lease_us, free_us, is_owed)

    def _may_be_over(self, offset: int) -> None:
        self.over.add(offset)
        if offset in self.lent:
            self.lent[offset].is_owed = False

    def _puts_off(self, row: Row, offset: int) -> None:
        """A release or a renewal begins."""
        lent, until_us = self.lent.get(offset), applied_until(self.context, row)
        if row.kind is Kind.RENEW:
            lease_us = self.lease_us if lent is None else lent.lease_us
            until_us = max(until_us + lease_us, row.lease_until_us or 0)
        elif row.suspend_ms is None:
            self._may_be_over(offset)
            until_us = FOR_EVER_US
        else:
            until_us += row.suspend_ms * MS
        is_answered = row.kind is Kind.RELEASE and row.outcome is Outcome.OK
        if lent is not None and is_answered and None is not row.lease_id == lent.row.lease_id:
            lent.free_us, lent.released = until_us, row
        else:
            self._keeps_away(offset, until_us)

    def _keeps_away(self, offset: int, until_us: int) -> None:
        self.put_off[offset] = max(self.put_off.get(offset, until_us), until_us)
        if offset not in self.handed:
            self.stray_us = max(self.stray_us, until_us)

    def _is_free(self, asked: Row) -> bool:
        """Was nothing of the lane lent or put off, for as long as a timer may be late?"""
        due_us = asked.started_us - self.bound_us
        return max(self._lent_until(self.lost_us), self.stray_us) < due_us and all(
            max(lent.free_us, self.put_off.get(offset, lent.free_us)) < due_us
            for offset, lent in self.lent.items()
        )

    def _lent_until(self, at_us: int) -> int:
        """Until when that may be lent which went out by then, and to nobody's knowledge."""
        longest_us = max((lent.lease_us for lent in self.lent.values()), default=self.lease_us)
        return at_us + longest_us

    # ------------------------------------------------------------ who asked in vain

    def _in_vain(self, asked: Row) -> None:
        """A question ended, and brought nothing: was anything certainly there?"""
        was_ready = asked.seq_begin in self.ready
        self.ready.discard(asked.seq_begin)
        if not was_ready or self.answered_at > asked.seq_begin or not self._is_free(asked):
            return
        others = set()
        for seq, other in self.open.items():
            if not self.context.client_died_since(other.client_id, other):
                others.add(seq)
            else:
                lost_us = self._lent_until(self._died_us(other) + self.delay_us)
                if lost_us >= asked.started_us - self.bound_us:
                    return
        for lent in self.lent.values():
            number = lent.row.seq_begin
            if lent.is_owed and number not in self.suspicions and not self._is_excused(lent.row):
                self.suspicions[number] = Suspicion(lent, lent.released, asked, set(others))

    def _resolved(self, ended: Row) -> list[Finding]:
        """A question ended: of which is it certain now that nobody else was handed anything?"""
        found: list[Finding] = []
        for number, suspicion in list(self.suspicions.items()):
            lent = suspicion.lent
            if ended.seq_begin in suspicion.others:
                suspicion.others.discard(ended.seq_begin)
                if ended.outcome is not Outcome.REFUSED:
                    del self.suspicions[number]
                    continue
            if not suspicion.others:
                del self.suspicions[number]
                lent.is_owed = False  # it is told once
                self.opportunities += 1
                found.append(NotBroughtBack(lent.row, suspicion.released, suspicion.asked))
        return found

    def _is_excused(self, row: Row) -> bool:
        context, since_us = self.context, row.started_us - self.context.info.clock_bound_us
        return (
            context.broker_died_since(row.broker, row)
            or context.broker_paused_since(row.broker, since_us)
            or any(each.ended_us is None or each.ended_us >= since_us for each in context.faults)
            or (row.queue_offset or 0) < context.kept_from.get(row.queue, 0)
            or row.lane in context.resets
        )

    def _died_us(self, row: Row) -> int:
        died = self.context.last_death.get(row.client_id or "")
        return row.started_us if died is None else died.started_us


judge = LaneJudge


def explain(found: NotBroughtBack) -> str:
    handed, asked = found.handed, found.asked
    ended = (
        "its lease ended by its time"
        if found.released is None
        else f"it was put back at {at(found.released)}"
    )
    later = ms(asked.started_us - handed.started_us)
    return (
        f"{who(asked)} asked for messages of {asked.lane} at {at(asked)} and was handed none, {later} after "
        f"{who(handed)} had been handed offset {handed.queue_offset} at {at(handed)}; {ended}, and nobody else had it"
    )
