"""A message whose lease has ended is handed out when somebody asks for messages of its lane.

Judged by questions that brought nothing (a RECEIVE that was refused). One refutes that was begun when the lease had
certainly ended, for as long as a timer may be late, and while nothing else of the lane may have been lent or put off;
but only once each other question that was under way has ended, and none of them brought the message, or may have.

A lease ends by its time, counted from the answer, or after the pause for which an answered release put it back; a
release that nobody answered ends it no sooner than its time does. Whatever may have renewed it makes it longer. A
question that nobody answered may have been handed any message, for a lease more, and so may one of a member that died.

At stake is each message that comes again. Says nothing of a message that somebody may have acknowledged, that was given
up, or that was handed out as often as it may be, nor of a lease that has no end in time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from specs.clauses.context import Context
from specs.clauses.intervals import Intervals
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.message_leases import applied_until
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
    """A hand-out. free_us: its lease has certainly ended by then. is_owed: the message has to come again."""

    row: Row
    free_us: int
    is_owed: bool
    released: Row | None = None


@dataclass(slots=True)
class Suspicion:
    """A question in vain, and those that were under way then and may have brought the message."""

    lent: Lent
    released: Row | None
    asked: Row
    others: set[int] = field(default_factory=set)


class LaneJudge(Judge):
    """lent: the last hand-out of each message that may be unfinished. over: messages that may be finished.

    put_off: of each message until when a request may keep it away. open: questions under way. lost_us: until when a
    message may be lent of which nobody knows. suspicions: by the hand-out's begin.
    """

    __slots__ = (
        "bound_us",
        "lease_us",
        "lent",
        "lost_us",
        "open",
        "over",
        "put_off",
        "suspicions",
    )

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        config = self.config
        self.lease_us = config.broker_lease_ms * MS
        self.bound_us = config.schedule_slack_ms * MS + context.info.clock_bound_us
        self.lent: dict[int, Lent] = {}
        self.over = Intervals()
        self.put_off: dict[int, int] = {}
        self.open: dict[int, Row] = {}
        self.lost_us = -self.bound_us
        self.suspicions: dict[int, Suspicion] = {}

    def begins(self, row: Row) -> Iterable[Finding]:
        offset = row.queue_offset
        if row.kind is Kind.RECEIVE:
            self.open[row.seq_begin] = row
        elif offset is None or row.outcome is Outcome.REFUSED:
            return NOTHING
        elif row.kind in (Kind.ACK, Kind.DEAD_LETTER):
            self._may_be_over(offset)
        else:
            self._puts_off(row, offset)
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.ACK and row.outcome is Outcome.OK and row.queue_offset is not None:
            self.lent.pop(row.queue_offset, None)
        if row.kind is not Kind.RECEIVE:
            return NOTHING
        self.open.pop(row.seq_begin, None)
        offset = row.queue_offset if row.outcome is Outcome.OK else None
        if row.outcome not in (Outcome.OK, Outcome.REFUSED):
            self.lost_us = max(self.lost_us, self._lost_until(over_us(row)))
        if row.outcome is Outcome.REFUSED:
            self._in_vain(row)
        found = self._resolved(row)
        if offset is not None:
            self._handed_out(row, offset)
        return found

    # ------------------------------------------------------------ what is lent

    def _handed_out(self, row: Row, offset: int) -> None:
        before, limit = self.lent.get(offset), self.config.max_reconsume_times
        self.opportunities += before is not None and before.is_owed
        times = row.reconsume_times
        is_last = limit >= 0 and (times is None or times >= limit)
        free_us = max(over_us(row) + self.lease_us, self.put_off.get(offset, 0))
        is_owed = row.lease_until_us is not None and not is_last and offset not in self.over
        self.lent[offset] = Lent(row, free_us, is_owed)

    def _may_be_over(self, offset: int) -> None:
        self.over.add(offset)
        if offset in self.lent:
            self.lent[offset].is_owed = False

    def _puts_off(self, row: Row, offset: int) -> None:
        """A release or a renewal begins."""
        lent, until_us = self.lent.get(offset), applied_until(self.context, row)
        if row.kind is Kind.RENEW:
            until_us = max(until_us + self.lease_us, row.lease_until_us or 0)
        elif row.suspend_ms is None:
            self._may_be_over(offset)
        else:
            until_us += row.suspend_ms * MS
        self.put_off[offset] = max(self.put_off.get(offset, 0), until_us)
        if lent is None:
            return
        lent.free_us = max(lent.free_us, until_us)
        is_hers = row.lease_id is not None and row.lease_id == lent.row.lease_id
        if row.kind is Kind.RELEASE and row.outcome is Outcome.OK and is_hers:
            lent.free_us, lent.released = until_us, row

    # ------------------------------------------------------------ who asked in vain

    def _in_vain(self, asked: Row) -> None:
        """A question ended, and brought nothing: was anything certainly there?"""
        due_us = asked.started_us - self.bound_us
        if self.lost_us >= due_us or any(lent.free_us >= due_us for lent in self.lent.values()):
            return
        others = set()
        for seq, other in self.open.items():
            if not self.context.client_died_since(other.client_id, other):
                others.add(seq)
            elif self._lost_until(self._died_us(other)) >= due_us:
                return
        for lent in self.lent.values():
            number = lent.row.seq_begin
            if lent.is_owed and number not in self.suspicions and not self._is_excused(lent.row):
                self.suspicions[number] = Suspicion(lent, lent.released, asked, set(others))

    def _resolved(self, ended: Row) -> list[Finding]:
        """A question ended: which messages does nobody else bring any more?"""
        found: list[Finding] = []
        for number, suspicion in list(self.suspicions.items()):
            lent = suspicion.lent
            if ended.seq_begin in suspicion.others:
                suspicion.others.discard(ended.seq_begin)
                brings = ended.outcome is Outcome.OK and ended.queue_offset in (
                    None,
                    lent.row.queue_offset,
                )
                if brings or ended.outcome not in (Outcome.OK, Outcome.REFUSED):
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

    def _lost_until(self, at_us: int) -> int:
        """Until when what went to nobody's knowledge at that time may be lent."""
        return at_us + self.config.delay_bound_ms * MS + self.lease_us

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
