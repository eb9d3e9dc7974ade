"""A message whose lease has ended is handed out when somebody asks for messages of its lane.

Judged by questions that brought nothing (a RECEIVE that was refused). One refutes that was begun when, for longer than
a timer may be late, the lease had certainly ended and nothing else of the lane may have been lent or put off; but only
once each other question that was under way meanwhile has ended, and none of them brought any message of the lane, or
may have: a server that hands them out one after the other may let this one wait.

A lease ends by its time, counted from the answer, or after the pause for which an answered release under it put the
message back, or by an acknowledgement under it that was answered, later than the hand-out. It is taken for as long as
the hand-out says, and as the configuration does at least; whatever may have renewed it makes it longer, by as much at
least. What was not answered may still be done while a request may be under way: such a question may have been handed
any message, for a lease more, the longest that was ever lent in the lane, and so may one of a member that died. Where a
release does not say for how long, its message is put off until it is acknowledged.

At stake is each message that comes again. Says nothing of a message that somebody may have acknowledged, that was given
up, or that may have been handed out as often as it may be, with each such question for one more time; nor of a lease
that has no end in time, which lasts until an acknowledgement or a release, nor of a lane in which a request may be of
any message (`specs.facts.message_leases`).
"""

from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from specs.clauses.premises import (
    BROKER_LIVES,
    BROKER_NOT_PAUSED,
    NO_RESET,
    NO_WALL_CLOCK_STEP,
    NOT_REMOVED,
    Premise,
)
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, ms, who
from specs.facts.columns import MS, NEVER, NO_TEXT, NONE, NOWHERE
from specs.facts.leases import over_us
from specs.facts.message_leases import LEASE_COLUMNS, may_be_gone
from specs.facts.message_names import may_be_any, offsets
from specs.facts.requests import applied_until
from specs.facts.segments import positions
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
PREMISE = (NO_WALL_CLOCK_STEP, BROKER_LIVES, BROKER_NOT_PAUSED, NOT_REMOVED, NO_RESET, UNDISTURBED)
SOURCES = ("docs/sources.md#leases-of-messages",)
KINDS = frozenset({Kind.RECEIVE, Kind.ACK, Kind.RELEASE, Kind.RENEW, Kind.DEAD_LETTER})
LEVELS = frozenset(Level)
NEEDS = frozenset({Kind.RECEIVE, Kind.ACK})
SETTINGS = ("broker_lease_ms", "max_reconsume_times")
CONCLUDES_FROM_ABSENCE = True
LOOKS_BACK = True
COLUMNS = (*LEASE_COLUMNS, "suspend_ms")


class NotBroughtBack(Finding):
    """released: the answered release that ended the lease; None where its time did. asked: the question in vain."""

    handed: Row
    released: Row | None
    asked: Row


def judge(rows: Rows, findings: Findings) -> None:
    """One step after the other, in the total order: each changes what is known of its lane."""
    told, about = _Told(rows), rows.are(*KINDS) & (rows.group != NO_TEXT)
    asks, ok, refused = rows.are(Kind.RECEIVE), rows.ended_as(Outcome.OK), told.refused
    named = told.offset != NONE
    steps = (
        (_Lane.asks, rows.begin, asks),
        (_Lane.may_be_finished, rows.begin, told.may_finish & ~refused & named),
        (_Lane.may_be_put_off, rows.begin, rows.are(Kind.RELEASE, Kind.RENEW) & ~refused & named),
        (_Lane.acknowledged, rows.end, rows.are(Kind.ACK) & ok & named),
        (_Lane.handed_out, rows.end, asks & ok & named),
        (_Lane.lost, rows.end, asks & ~refused & ~(ok & named)),
        (_Lane.asked_in_vain, rows.end, asks & refused),
    )
    found = [(where := positions(about & some), moment[where]) for _, moment, some in steps]
    at, moment = (np.concatenate(each) for each in zip(*found, strict=True))
    step = np.repeat(np.arange(len(steps)), [len(where) for where, _ in found])
    order = np.argsort(moment, kind="stable")
    order = order[moment[order] < rows.clock_stepped(at[order])]
    lanes: dict[int, _Lane] = {}
    for row, number in zip(at[order].tolist(), step[order].tolist(), strict=True):
        lane = int(rows.lane[row])
        if lane not in lanes:
            lanes[lane] = _Lane(rows, findings, told, row)
        steps[number][0](lanes[lane], row)


class _Told:
    """What rows tell: columns with a value for every row, times in µs.

    offset: of the message, NONE where nobody knows it. lease_us: how long the lease of a hand-out is at least; free_us:
    when it is certainly over; left: how often the message may still come again, where it has to; else 0. may_finish:
    may a request finish its message? away_us: until when it may keep it away, at least. gives_back: is it a release
    that was answered, and names its lease? in_vain: is it a question that brought nothing, as none that ended meanwhile
    did, in a lane of which nobody had asked for what may be about any message?
    """

    def __init__(self, rows: Rows) -> None:
        everywhere = np.arange(rows.size, dtype=np.int64)
        limit, times = (
            rows.config("max_reconsume_times", everywhere),
            rows.number("reconsume_times"),
        )
        until_us, suspend_ms = rows.number("lease_until_us"), rows.number("suspend_ms")
        self.offset, self.lease = rows.shared(offsets), rows.text("lease_id")
        self.refused = rows.ended_as(Outcome.REFUSED)
        self.releases = releases = rows.are(Kind.RELEASE)
        self.over_us, self.applied_us = over_us(rows, everywhere), rows.shared(applied_until)
        lasts_us = np.where(until_us == NONE, 0, until_us - rows.started)
        self.lease_us = np.maximum(rows.config("broker_lease_ms", everywhere) * MS, lasts_us)
        self.free_us = np.where(until_us == NONE, NEVER, self.over_us + self.lease_us)
        left = np.where(limit < 0, NEVER, np.where(times == NONE, 0, np.maximum(limit - times, 0)))
        self.left = np.where(until_us == NONE, 0, left)
        endless = releases & (suspend_ms == NONE)
        self.may_finish = endless | rows.are(Kind.ACK, Kind.DEAD_LETTER)
        pause_us = np.where(releases & ~endless, suspend_ms, 0) * MS
        self.away_us = np.where(releases, self.applied_us + pause_us, until_us)
        self.away_us[endless] = NEVER
        self.gives_back = releases & rows.ended_as(Outcome.OK) & (self.lease != NO_TEXT)
        brought = rows.are(Kind.RECEIVE) & rows.ended_as(Outcome.OK)
        handed = Line(rows.lane, rows.end, positions(brought)).count_before
        of_any = Line(rows.lane, rows.begin, positions(rows.shared(may_be_any) & ~self.refused))
        self.in_vain = handed(rows.lane, rows.begin) == handed(rows.lane, rows.end)
        self.in_vain &= self.refused & (of_any.count_before(rows.lane, rows.end) == 0)


@dataclass(slots=True)
class _Loan:
    """A hand-out, by its position. lease_us: how long its lease is. free_us: when it is certainly over. owed: the
    message has to come again. released: the release that ended the lease; NOWHERE where its time did."""

    row: int
    lease_us: int
    free_us: int
    owed: bool
    released: int = NOWHERE


class _Lane:
    """A lane, as of a moment. Messages go by their offsets, rows by their positions; times are in µs.

    loans: the last hand-out of each message that may be unfinished. unsure: messages that may be finished. away_us: of
    each message until when requests, or an earlier lease, may keep it away; busy_us: likewise of those that nobody was
    handed. handed: messages that were handed out. lost_us: until when questions that were lost may have been handed a
    message of which nobody knows, ascending. longest_us: the longest lease that was lent: such a one may be as long.
    under_way: the questions; did each begin when nothing was lent?
    """

    def __init__(self, rows: Rows, findings: Findings, told: _Told, row: int) -> None:
        self.rows, self.findings, self.told = rows, findings, told
        self.context = rows.context_of(row)
        config, self.clocks_us = self.context.info.config, self.context.info.clock_bound_us
        self.lease_us, self.late_us = config.broker_lease_ms * MS, config.delay_bound_ms * MS
        self.longest_us = self.lease_us
        self.bound_us = config.schedule_slack_ms * MS + self.clocks_us
        self.loans: dict[int, _Loan] = {}
        self.unsure: set[int] = set()
        self.away_us: defaultdict[int, int] = defaultdict(lambda: -NEVER)
        self.busy_us, self.lost_us = -NEVER, [-NEVER]
        self.handed: set[int] = set()
        self.under_way: dict[int, bool] = {}

    def asks(self, row: int) -> None:
        self.under_way[row] = bool(self.told.in_vain[row]) and self._is_free(row)

    def may_be_finished(self, row: int) -> None:
        offset = int(self.told.offset[row])
        self.unsure.add(offset)
        if offset in self.loans:
            self.loans[offset].owed = False

    def may_be_put_off(self, row: int) -> None:
        told, offset = self.told, int(self.told.offset[row])
        loan, until_us = self.loans.get(offset), int(told.away_us[row])
        if not told.releases[row]:
            lease_us = self.lease_us if loan is None else loan.lease_us
            until_us = max(until_us, int(told.applied_us[row]) + lease_us)
        if offset not in self.handed:
            self.busy_us = max(self.busy_us, until_us)
        if loan is not None and told.gives_back[row] and told.lease[row] == told.lease[loan.row]:
            loan.free_us, loan.released = until_us, row
        else:
            self.away_us[offset] = max(self.away_us[offset], until_us)

    def acknowledged(self, row: int) -> None:
        offset, lease = int(self.told.offset[row]), self.told.lease
        if offset in self.loans and lease[self.loans[offset].row] == lease[row]:
            del self.loans[offset]

    def handed_out(self, row: int) -> None:
        told, offset = self.told, int(self.told.offset[row])
        before = self.loans.get(offset)
        if before is not None:
            self.findings.at_stake_times(row, int(before.owed))
            self.away_us[offset] = max(self.away_us[offset], before.free_us)
        self.handed.add(offset)
        del self.under_way[row]
        self.longest_us = max(self.longest_us, int(told.lease_us[row]))
        owed = bool(told.left[row]) and offset not in self.unsure
        self.loans[offset] = _Loan(row, int(told.lease_us[row]), int(told.free_us[row]), owed)

    def lost(self, row: int) -> None:
        """A question ended, and nobody knows whether it brought a message, or which."""
        del self.under_way[row]
        until_us = int(self.told.over_us[row]) + self.late_us
        self.lost_us.append(max(until_us, self.lost_us[-1]))

    def asked_in_vain(self, row: int) -> None:
        """A question ended, and brought nothing: was anything certainly there?"""
        was_free, now = self.under_way.pop(row), int(self.rows.end[row])
        owed = [loan for loan in self.loans.values() if loan.owed]
        if not (owed and was_free and self._is_free(row)):
            return
        if any(self._may_have_it(other, row) for other in self.under_way):
            return
        for loan in owed:
            if not (self._may_be_the_last(loan.row) or self._is_excused(loan.row, now)):
                loan.owed = False  # it is told once
                self.findings.at_stake_times(row, 1)
                roles = {"handed": loan.row, "released": loan.released, "asked": row}
                self.findings.shown(NotBroughtBack, roles)

    def _is_free(self, asked: int) -> bool:
        """Is all that was lent or put off, by what was told so far, due longer ago than a timer may be late?"""
        until_us = max(self.busy_us, self.lost_us[-1] + self.longest_us)
        for offset, loan in self.loans.items():
            until_us = max(until_us, loan.free_us, self.away_us[offset])
        return until_us < self._due(asked)

    def _may_be_the_last(self, handed: int) -> bool:
        """May lost questions, and those of members that died, have been handed its message as often as it may be?"""
        since_us = int(self.rows.started[handed]) - self.clocks_us
        lost = len(self.lost_us) - bisect_left(self.lost_us, since_us)
        lost += sum(not self.told.refused[row] for row in self.under_way)
        return lost >= int(self.told.left[handed])

    def _due(self, asked: int) -> int:
        """Before when a lease must have ended for this question to bring the message, though a timer be late."""
        return int(self.rows.started[asked]) - self.bound_us

    def _may_have_it(self, row: int, asked: int) -> bool:
        """May this question, which is under way still, have been handed a message, or is that never certain?"""
        client, now = self.rows.client_of(row), int(self.rows.end[asked])
        death = self.context.latest(client, Kind.CRASH, now)
        if death is not None and death > self.rows.begin[row]:
            until_us = self.context.died_us[death] + self.late_us + self.longest_us
            return until_us >= self._due(asked)
        stepped = bool(self.rows.end[row] >= self.context.clock_stepped)
        return stepped or not self.told.refused[row]

    def _is_excused(self, row: int, now: int) -> bool:
        """May the message be gone since the hand-out, or did the server stand still, or a fault last?"""
        since_us = int(self.rows.started[row]) - self.clocks_us
        broker = self.rows.name_of("broker", row)
        return (
            may_be_gone(self.rows, row, now)
            or self.context.broker_paused_since(broker, since_us, now)
            or self.context.fault_between(since_us, NEVER, now, ("", ""))
        )


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
