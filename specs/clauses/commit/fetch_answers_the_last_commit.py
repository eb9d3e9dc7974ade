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
from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import BROKER_LIVES, BROKER_NOT_PAUSED, NO_RESET, Premise
from specs.clauses.rows import over_us
from specs.clauses.words import MS, at, who
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

REMEMBERED_MAX = 1_024


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


class _Question:
    """A look-up under way: what was certainly stored before it, and what may have been applied since."""

    __slots__ = ("known", "later")

    def __init__(self, known: Row | None, later: Iterable[Row]) -> None:
        self.known = known
        self.later = list(later)


class LaneJudge(Judge):
    """Remembers what was last certainly stored, the commits that may have been applied after it, and open questions."""

    __slots__ = ("asked", "bound_us", "first", "floor_us", "known", "later", "named", "was_reset")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.bound_us = self.config.delay_bound_ms * MS + context.info.clock_bound_us
        self.first: Row | None = None
        self.known: Row | None = None  # an acknowledged commit, or a look-up that was answered
        self.later: deque[Row] = (
            deque()
        )  # by their begins; none that may have been applied after `known` is missing
        self.floor_us = (
            -1
        )  # commits that are not known, or were forgotten, may have been applied until then
        self.asked: dict[int, _Question] = {}  # by seq
        self.named = Named() if context.info.closed_world else None
        self.was_reset = False

    def begins(self, row: Row) -> Iterable[Finding]:
        if self.first is None:
            self.first = row
            if not self.context.info.closed_world:
                self.floor_us = row.started_us + self.bound_us
        if self.named is not None:
            self.named.begins(row)
        if row.kind is Kind.RESET:
            self.was_reset = True
            self.asked.clear()
            self.later.clear()
        elif self.was_reset:
            return NOTHING
        elif row.kind is Kind.FETCH_OFFSET:
            self.asked[row.seq_begin] = _Question(self.known, self.later)
        elif row.value is not None:
            self.later.append(row)
            for question in self.asked.values():
                question.later.append(row)
            if len(self.later) > REMEMBERED_MAX:
                self.floor_us = max(self.floor_us, self._until_us(self.later.popleft()))
                if self.known is not None and self.known.started_us <= self.floor_us:
                    self.known = None
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.FETCH_OFFSET:
            found: Iterable[Finding] = (
                NOTHING if self.named is None else self._named(self.named, row)
            )
            if found:
                self.asked.pop(row.seq_begin, None)
                return found
            return self._answered(row)
        if not self.was_reset and row.outcome is Outcome.OK and row.value is not None:
            self._is_stored(row)
        return NOTHING

    def _is_stored(self, row: Row) -> None:
        """The row tells what was stored at some moment between its begin and its end."""
        if row.started_us > self.floor_us and (
            self.known is None or row.seq_begin > self.known.seq_begin
        ):
            self.known = row
            while self.later and self._until_us(self.later[0]) < row.started_us:
                self.later.popleft()

    def _until_us(self, commit: Row) -> int:
        """Until when the commit may be applied."""
        until_us = max(over_us(commit), commit.started_us + self.bound_us)
        return self.context.may_arrive_until(commit, until_us)

    def _answered(self, row: Row) -> Iterable[Finding]:
        question, answer = self.asked.pop(row.seq_begin, None), answered_offset(row)
        if question is None or answer is None or self.was_reset:
            return NOTHING
        found = (
            NOTHING
            if question.known is None
            else self._judged(question.known, question.later, row, answer)
        )
        if not found and answer > 0:
            self._is_stored(row)
        return found

    def _judged(self, known: Row, later: Iterable[Row], row: Row, answer: int) -> Iterable[Finding]:
        values = {known.value or 0}
        values.update(each.value or 0 for each in later if self._until_us(each) >= known.started_us)
        context = self.context
        if min(values) < 0 or context.broker_died_since(row.broker, known):
            return NOTHING
        if context.broker_paused_since(row.broker, known.started_us - self.bound_us):
            return NOTHING
        if may_be_cleaned_up(context, row, answer, min(values)):
            return NOTHING
        self.opportunities += 1
        first = None if context.info.closed_world or self.first is known else self.first
        return NOTHING if answer in values else (Forgotten(first, known, row),)

    def _named(self, named: Named, row: Row) -> Iterable[Finding]:
        answer = answered_offset(row)
        if answer is None or not named.all_known:
            return NOTHING
        if named.nothing is None:
            named.looked_up(row, answer)
            return NOTHING
        self.opportunities += 1
        return (NeverCommitted(named.nothing, row),) if named.lacks(answer) else NOTHING


class Named:
    """The values that commits and resets of a lane have named.

    nothing: the look-up that found nothing stored before anybody had named any: then these are all. values: as long as
    they are not too many; then the highest of them is remembered.
    """

    __slots__ = ("all_known", "highest", "may_be_stored", "nothing", "values")

    def __init__(self) -> None:
        self.nothing: Row | None = None
        self.values: set[int] | None = set()
        self.highest = 0
        self.all_known = True
        self.may_be_stored = False  # may anything else have been stored than what is named here?

    def begins(self, row: Row) -> None:
        """A commit, a reset or a look-up begins."""
        if row.kind is Kind.FETCH_OFFSET:
            return
        if row.value is None:
            self.all_known = False  # a reset to nobody knows where
            return
        if self.nothing is None:
            self.may_be_stored = True
            return
        self.highest = max(self.highest, row.value)
        if self.values is not None:
            self.values.add(row.value)
            if len(self.values) > REMEMBERED_MAX:  # from now on only too high answers are noticed
                self.values = None

    def looked_up(self, row: Row, answer: int) -> None:
        """What a look-up heard before any has found nothing stored."""
        if answer != -1:
            self.may_be_stored = True
        elif not self.may_be_stored:
            self.nothing = row

    def lacks(self, answer: int) -> bool:
        """Has nobody named what a look-up was told?"""
        if answer <= 0:
            return False
        return answer > self.highest if self.values is None else answer not in self.values


def answered_offset(row: Row) -> int | None:
    """What a look-up was told: the offset, -1 for "nothing stored"; None when that is not known."""
    if row.outcome is Outcome.OK:
        return row.value
    return -1 if row.outcome is Outcome.REFUSED and row.value == -1 else None


def may_be_cleaned_up(context: Context, row: Row, answer: int, stored: int) -> bool:
    """Is nothing stored any more, and had the broker said that it keeps nothing before what was stored?"""
    return answer == -1 and stored <= context.kept_from.get(row.queue, 0)


judge = LaneJudge


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
