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
(`specs.facts.message_leases`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from specs.clauses.judging import Finding
from specs.clauses.premises import (
    BROKER_LIVES,
    BROKER_NOT_PAUSED,
    NO_RESET,
    NO_WALL_CLOCK_STEP,
    NOT_REMOVED,
    Premise,
)
from specs.clauses.words import at, ms, who
from specs.facts.findings import Findings
from specs.facts.message_leases import FOR_EVER, LEASE_COLUMNS, Request, applied_until, events
from specs.facts.message_names import may_be_any, offsets
from specs.facts.rows import Rows
from specs.facts.segments import MS, NEVER, NO_TEXT, NONE, NOWHERE, positions
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
COLUMNS = (*LEASE_COLUMNS, "suspend_ms")


@dataclass(frozen=True, slots=True)
class NotBroughtBack(Finding):
    """released: the answered release that ended the lease; None where its time did. asked: the question in vain."""

    handed: Row
    released: Row | None
    asked: Row


def judge(rows: Rows, findings: Findings) -> None:
    """Lane by lane, in the total order."""
    about = positions(rows.are(*KINDS) & (rows.group != NO_TEXT))
    if not len(about):
        return
    about = about[np.argsort(rows.lane[about], kind="stable")]
    for places in np.split(about, positions(np.diff(rows.lane[about]) != 0) + 1):
        _Lane(rows, findings, places.tolist()).judge()


class _Missed(NamedTuple):
    """It is certain at this seq that a question brought nothing of what was there. released, asked: the positions of
    the release that ended the lease (NOWHERE: its time did) and of the question."""

    seq: int
    released: int
    asked: int


@dataclass(slots=True)
class _Loan:
    """A hand-out. lease_us: how long its lease is. free_us: when it is certainly over. owed: the message has to come
    again. quiet: up to which seq another question in vain says nothing new: one waits for others to be answered."""

    row: Request
    offset: int
    lease_us: int
    free_us: int
    owed: bool
    released: int = NOWHERE
    quiet: int = -1
    missed: _Missed | None = None


class _Lane:
    """One lane, event by event.

    asks: its questions. loans: the last hand-out of each message that may be unfinished. unsure: messages that may be
    finished. kept_away: of each message until when requests, or an earlier lease, may keep it away; busy_us: likewise
    of those that nobody was handed. handed: messages that were handed out. lost_us: until when a message may have been
    handed out of which nobody knows. free: questions in vain that began when nothing was lent, by their begin. missed:
    loans of which it will be certain that they were not brought back. Times are in µs.
    """

    def __init__(self, rows: Rows, findings: Findings, places: list[int]) -> None:
        self.rows, self.findings = rows, findings
        self.context = rows.context_of(places[0])
        config, self.clocks_us = self.context.info.config, self.context.info.clock_bound_us
        self.limit, self.lease_us = config.max_reconsume_times, config.broker_lease_ms * MS
        self.late_us = config.delay_bound_ms * MS
        self.bound_us = config.schedule_slack_ms * MS + self.clocks_us
        self.offsets, self.of_any = rows.shared(offsets), rows.shared(may_be_any)
        self.events = events(rows, places)
        self.asks = [row for _, row, begins in self.events if begins and row.kind is Kind.RECEIVE]
        self.loans: dict[int, _Loan] = {}
        self.unsure: set[int] = set()
        self.kept_away: dict[int, int] = {}
        self.busy_us = self.lost_us = -FOR_EVER
        self.handed: set[int] = set()
        self.free: set[int] = set()
        self.stakes = 0
        self.missed: list[_Loan] = []

    def judge(self) -> None:
        for now, row, begins in self.events:
            if now >= self.context.clock_stepped:
                break
            self._tell(now)
            offset = int(self.offsets[row.place])
            if not begins:
                self._ends(row, offset)
            elif row.kind is Kind.RECEIVE:
                if row.outcome is Outcome.REFUSED and self._lent_until() < self._due(row):
                    self.free.add(row.begin)
            elif row.outcome is not Outcome.REFUSED:
                self._asked(row, offset, now)
        self._tell(min(NEVER, self.context.clock_stepped) - 1)
        if self.stakes:
            self.findings.at_stake_times(self.events[0][1].place, self.stakes)

    def _asked(self, row: Request, offset: int, now: int) -> None:
        """Whatever may finish the message, or keep it away, begins."""
        if offset == NONE:
            self.busy_us = FOR_EVER if self.of_any[row.place] else self.busy_us
            return
        loan, pause = self.loans.get(offset), int(self.rows.number("suspend_ms")[row.place])
        endless = row.kind is Kind.RELEASE and pause == NONE
        if endless or row.kind in (Kind.ACK, Kind.DEAD_LETTER):
            self.unsure.add(offset)
            if loan is not None:
                loan.owed = False
            if not endless:
                return
        until = applied_until(self.context, self._party(row), row, now)
        if row.kind is Kind.RENEW:
            lease_us = self.lease_us if loan is None else loan.lease_us
            until = max(until + lease_us, 0 if row.until == NONE else row.until)
        else:
            until = FOR_EVER if endless else until + pause * MS
        if offset not in self.handed:
            self.busy_us = max(self.busy_us, until)
        own = loan is not None and row.lease != NO_TEXT and row.lease == loan.row.lease
        if loan is not None and own and row.kind is Kind.RELEASE and row.outcome is Outcome.OK:
            loan.free_us, loan.released = until, row.place
        else:
            self._keep_away(offset, until)

    def _keep_away(self, offset: int, until: int) -> None:
        """Something may keep the message away until then."""
        self.kept_away[offset] = max(self.kept_away.get(offset, -FOR_EVER), until)

    def _ends(self, row: Request, offset: int) -> None:
        """A request ends. offset: of its message, NONE where nobody knows."""
        if row.kind is Kind.ACK and row.outcome is Outcome.OK:
            loan = self.loans.get(offset)
            if loan is not None and loan.row.lease == row.lease:
                del self.loans[offset]
        if row.kind is not Kind.RECEIVE:
            return
        if row.outcome is Outcome.REFUSED:
            self._in_vain(row)
        elif row.outcome is not Outcome.OK or offset == NONE:
            self.lost_us = max(self.lost_us, row.over_us + self.late_us)
        else:
            self._lends(row, offset)

    def _lends(self, row: Request, offset: int) -> None:
        """A message was handed out."""
        before = self.loans.get(offset)
        if before is not None:
            self.stakes += before.owed
            self._keep_away(offset, before.free_us)
        self.handed.add(offset)
        ends = row.until != NONE
        lease_us = max(self.lease_us, row.until - row.started if ends else 0)
        free_us = row.over_us + lease_us if ends else FOR_EVER
        is_last = self.limit >= 0 and (row.times == NONE or row.times >= self.limit)
        owed = ends and not is_last and offset not in self.unsure
        self.loans[offset] = _Loan(row, offset, lease_us, free_us, owed)

    def _lent_until(self) -> int:
        """Until when anything of the lane may be lent or put off, by what was told so far."""
        lent = [loan.free_us for loan in self.loans.values()]
        away = [self.kept_away[offset] for offset in self.loans if offset in self.kept_away]
        return max([self.busy_us, self.lost_us + self._longest(), *lent, *away])

    def _longest(self) -> int:
        """The longest lease of those lent: one of which nobody knows may be as long."""
        return max((loan.lease_us for loan in self.loans.values()), default=self.lease_us)

    def _due(self, asked: Request) -> int:
        """Before when a lease must have ended for this question to bring the message, though a timer be late."""
        return asked.started - self.bound_us

    def _in_vain(self, asked: Request) -> None:
        """A question ended, and brought nothing: was anything certainly there?"""
        due_us = self._due(asked)
        if asked.begin not in self.free or self._lent_until() >= due_us:
            return
        together = [row for row in self.asks if row.begin < asked.end and row.end > asked.begin]
        if any(row.outcome is Outcome.OK and row.end < asked.end for row in together):
            return
        alive = []
        for row in (each for each in together if each.end > asked.end):
            died_us = self._died_us(row, asked.end)
            if died_us is None:
                alive.append(row)
            elif died_us + self.late_us + self._longest() >= due_us:
                return
        for loan in self.loans.values():
            if loan.owed and loan.quiet < asked.end and not self._is_excused(loan, asked.end):
                self._wait(loan, asked, alive)

    def _wait(self, loan: _Loan, asked: Request, others: list[Request]) -> None:
        """Until all others are answered, or one of them was, or may have been, handed anything."""
        for row in sorted(others, key=lambda row: row.end):
            loan.quiet = row.end
            if row.end == NEVER or row.outcome is not Outcome.REFUSED:
                return
        seq = max([asked.end, *(row.end for row in others)])
        loan.missed = _Missed(seq, loan.released, asked.place)
        loan.quiet = NEVER
        self.missed.append(loan)

    def _tell(self, now: int) -> None:
        """What is certain by then."""
        for loan in list(self.missed):
            missed = loan.missed
            if missed is None or missed.seq > now:
                continue
            self.missed.remove(loan)
            loan.owed = False  # it is told once
            self.stakes += 1
            roles = {"handed": loan.row.place, "released": missed.released, "asked": missed.asked}
            self.findings.shown(NotBroughtBack, roles)

    def _is_excused(self, loan: _Loan, now: int) -> bool:
        """Did the server die or stand still, or a fault last, since the hand-out, or was the message removed, or the
        lane's offset reset?"""
        context, row = self.context, loan.row
        since_us = row.started - self.clocks_us
        queue, group = self.rows.queue_of(row.place), self.rows.name_of("group", row.place)
        return (
            context.broker_died_since(queue.broker, row.begin, row.epoch, now)
            or context.broker_paused_since(queue.broker, since_us, now)
            or any(
                fault.seq_begin <= now and (fault.ended_us is None or fault.ended_us >= since_us)
                for fault in context.faults
            )
            or loan.offset < context.kept_from(queue, now)
            or context.resets.get((group, *queue), NEVER) <= now
        )

    def _party(self, row: Request) -> tuple[str, str]:
        """Who asked, and the server."""
        return self.rows.name_of("client_id", row.place), self.rows.name_of("broker", row.place)

    def _died_us(self, row: Request, now: int) -> int | None:
        """When the member that asked died since; None where it did not."""
        client = self._party(row)[0]
        seq = self.context.latest(client, Kind.CRASH, now)
        if seq is None or seq <= row.begin:
            return None
        return self.context.died_us[seq]


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
