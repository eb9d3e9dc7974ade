"""Who asks for the stored offset hears the last acknowledged commit, or one that may have come after it.

Within one broker epoch. Take the acknowledged commit that began last among those that ended before the question:
every commit that was certainly over before it began is overwritten. What remains are its own value and those of all
commits that were, or may have been, applied later and before the answer: each may be applied until its answer, and,
answered or not, within the bound for delays after it was sent (a network may duplicate it), or for as long as a fault
of its link held it up. An answer that names another value, or "nothing stored", is a violation. A look-up that was
answered tells as much as an acknowledged commit: what it heard was stored then, and two look-ups with nothing between
them that could have been applied hear the same. A commit that was refused changed nothing.

Nobody hears what nobody named: where, in a closed world, the lane's first look-up, before any commit or reset, said
that nothing was stored, every answer is a value of one that had begun before the answer's end, or 0, or "nothing
stored", across crashes of the broker too. Where no look-up said so, any value may have been stored before the history's
first row: one-way commits may never arrive, and what a crash takes back brings an older value to light.

A commit is an unconditional put, so the values need not ascend. Of the last commit nothing is said where a negative
value was committed (it reads as "nothing stored"), where the broker died since that commit (see CMT-7) or was paused
since then (a request may have waited in its socket for longer than the bound), nor on a lane whose offset was reset.
"Nothing stored" is no violation where the broker keeps nothing before the value that was stored, as far as it has
announced: it forgets the offset of a group that nobody subscribes to any more, once that has fallen behind what it
has removed. Where not everybody is recorded, and the history may begin in the middle, nothing is said for the length
of the bound for delays from the lane's first row on. Where so many commits come that not all of them can be
remembered, only newer ones are judged.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from specs.clauses.judging import Finding
from specs.clauses.premises import BROKER_LIVES, BROKER_NOT_PAUSED, NO_RESET, Premise
from specs.clauses.words import at, who
from specs.facts.findings import Findings
from specs.facts.lanes import OP_COLUMNS, LaneItems, Machine, Op, each_lane
from specs.facts.segments import MS, NEVER, NONE
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "CMT-9"
TITLE = "a look-up answers the last commit"
STATEMENT = (
    "A look-up of the stored offset answers the last acknowledged commit of the epoch, and "
    "never what nobody committed."
)
PARTY = Party.BROKER
KEY = Key.LANE
PREMISE = (
    NO_RESET,
    BROKER_LIVES,
    BROKER_NOT_PAUSED,
    Premise(
        "not cleaned up",
        "the broker did not say that it keeps nothing before what was stored: then it may be forgotten",
        told_by=frozenset({Kind.TRIM}),
    ),
)
SOURCES = ("docs/sources.md#offsets",)
RULES = ("WIR-13",)
KINDS = frozenset({Kind.COMMIT, Kind.FETCH_OFFSET, Kind.RESET})
NEEDS = frozenset({Kind.COMMIT, Kind.FETCH_OFFSET})
EXCUSED_BY = frozenset({Kind.FAULT})
CONCLUDES_FROM_ABSENCE = True
COLUMNS = OP_COLUMNS


@dataclass(frozen=True, slots=True)
class Forgotten(Finding):
    """first: the lane's first row, where the history may begin in the middle. known: what was certainly stored: an
    acknowledged commit, or an answer to an earlier look-up."""

    first: Row | None
    known: Row
    answer: Row


@dataclass(frozen=True, slots=True)
class NeverCommitted(Finding):
    """nothing: the look-up that found nothing stored before anybody had named any value."""

    nothing: Row
    answer: Row


REMEMBERED_MAX = 1_024


class Lane(Machine):
    """What was last certainly stored, what may have been applied after it, the questions under way, and what anybody
    has named."""

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.bound_us = self.config.delay_bound_ms * MS + self.context.info.clock_bound_us
        self.is_closed = self.context.info.closed_world
        self.first: Op | None = None
        self.known: Op | None = None
        self.later: deque[Op] = deque()
        self.floor_us = NEVER  # the first row tells
        self.asked: dict[int, tuple[Op | None, list[Op]]] = {}
        self.was_reset = False
        # Once a look-up has told that nothing was stored: every value named since, and of too many the highest.
        self.all_named = True
        self.is_open = False  # may anything have been stored before?
        self.nothing: Op | None = None
        self.named: set[int] = set()
        self.highest = NONE

    def begins(self, op: Op) -> None:
        if self.first is None:
            self.first = op
            self.floor_us = -1 if self.is_closed else op.started + self.bound_us
        if op.kind is not Kind.FETCH_OFFSET:
            self._names(op)
        if op.kind is Kind.RESET:
            self.was_reset = True
        elif self.was_reset:
            return
        elif op.kind is Kind.FETCH_OFFSET:
            self.asked[op.place] = (self.known, list(self.later))
        elif op.value != NONE:
            self.later.append(op)
            for _, later in self.asked.values():
                later.append(op)
            if len(self.later) > REMEMBERED_MAX:
                self.floor_us = max(self.floor_us, self._until(self.later.popleft()))
                if self.known is not None and self.known.started <= self.floor_us:
                    self.known = None

    def ends(self, op: Op) -> None:
        if op.kind is not Kind.FETCH_OFFSET:
            if not self.was_reset and op.outcome is Outcome.OK and op.value != NONE:
                self._is_stored(op)
            return
        answer = answered_offset(op)
        known, later = self.asked.pop(op.place, (None, []))
        if answer is None or (self.is_closed and self.all_named and self._is_invented(op, answer)):
            return
        if not self.was_reset:
            if known is not None and self._is_forgotten(known, later, answer):
                first = None if self.is_closed or self.first is known else self.first
                self.broken(Forgotten, first=first, known=known, answer=op)
                return
            if answer > 0:
                self._is_stored(op)

    # ---- the last that was stored

    def _is_stored(self, op: Op) -> None:
        """What the row names was stored at some moment between its begin and its end."""
        if op.started > self.floor_us and (self.known is None or op.begin > self.known.begin):
            self.known = op
            while self.later and self._until(self.later[0]) < op.started:
                self.later.popleft()

    def _until(self, commit: Op) -> int:
        until = max(commit.over_us, commit.started + self.bound_us)
        return self.may_arrive_until(commit, until)

    def _is_forgotten(self, known: Op, later: list[Op], answer: int) -> bool:
        values = {
            known.value,
            *(each.value for each in later if self._until(each) >= known.started),
        }
        if min(values) < 0 or self.broker_died_since(known):
            return False
        if self.context.broker_paused_since(self.broker, known.started - self.bound_us, self.now):
            return False
        if answer < 0 and self.keeps_nothing_before(min(values)):
            return False
        self.stakes += 1
        return answer not in values

    # ---- what anybody has named

    def _names(self, op: Op) -> None:
        if op.value == NONE:
            self.all_named = False
        elif self.nothing is None:
            self.is_open = True
        else:
            self.highest = max(self.highest, op.value)
            if len(self.named) <= REMEMBERED_MAX:
                self.named.add(op.value)

    def _is_invented(self, op: Op, answer: int) -> bool:
        """Has nobody named the answer?"""
        if self.nothing is None:
            self.is_open |= answer >= 0
            self.nothing = None if self.is_open else op
            return False
        self.stakes += 1
        if len(self.named) > REMEMBERED_MAX:
            invented = answer > max(0, self.highest)
        else:
            invented = answer > 0 and answer not in self.named
        if invented:
            self.broken(NeverCommitted, nothing=self.nothing, answer=op)
        return invented


def answered_offset(look: Op | Row) -> int | None:
    """What a look-up was told: the offset, -1 for "nothing stored"; None when that is not known."""
    if look.outcome is Outcome.OK:
        return None if look.value in (None, NONE) else look.value
    return -1 if look.outcome is Outcome.REFUSED and look.value == -1 else None


judge = each_lane(Lane, (Kind.COMMIT, Kind.FETCH_OFFSET, Kind.RESET), lease=False)


def explain(found: Forgotten | NeverCommitted) -> str:
    answer = found.answer
    told = "that nothing was stored" if answered_offset(answer) == -1 else str(answer.value)
    heard = f"{who(answer)} asked at {at(answer)} for the offset stored for {answer.lane} and heard {told}"
    if isinstance(found, NeverCommitted):
        return (
            f"{heard}, which nobody had committed since nothing was stored at {at(found.nothing)}"
        )
    known = found.known
    if known.kind is Kind.FETCH_OFFSET:
        return f"{heard}, after {who(known)} had heard {known.value} at {at(known)}; nothing came since then"
    return (
        f"{heard}, after {who(known)} had committed {known.value} at {at(known)} and been answered; nothing came since "
        "then"
    )
