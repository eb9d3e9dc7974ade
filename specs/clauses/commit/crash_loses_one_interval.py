"""What was committed longer than one persist interval before a broker's crash is still stored after it.

The broker writes its offsets to disk each persist interval, the first time after the first persist delay, both of its
own (`broker_persist_ms`, `broker_persist_first_ms`) where it does not write as often as its clients report. So a
commit that was answered, followed by the longer of the two (and the slack of a timer) without a crash, is on the
disk. One interval (and the slack) is enough where the broker had answered somebody about the lane so long before the
commit that its first write was over. When the broker crashes later and somebody then asks for the offset, the answer
is not below that commit, nor below any commit that may have been applied after it, however late. "Nothing stored" is
below every offset. A commit that was refused is none. In a closed world the answer is one of these values.

A reset that was answered is stored like a commit. After a reset only resets are taken for certainly stored: a broker
that keeps a reset itself lets no commit undo it until the group pulls again.

The other half of the interval is the client's, who reports what it finished each persist interval: CMT-2 has that, and
so this clause is the broker's alone. Not claimed where the broker was paused since that commit (its timer stood still)
or its disk was filled before the look-up (it can't write then), where "nothing stored" is answered and such a commit
lay at or below what the queue still keeps (brokers remove what is left of a group that nobody works in), where a new
epoch tells of a death of which nobody knows when it was, where nobody says what a commit that may have been applied
after it stored (a raw request may tell no value), nor on a lane whose offset was reset to nobody knows where, or
by its clients (the 4.9 line).
Where not everybody is recorded, and the history may begin in the middle, nothing is said of commits that began within
the bound for delays from the lane's first row on. Where so many commits come that not all of them can be remembered,
only newer ones are judged.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from specs.clauses.commit.fetch_answers_the_last_commit import answered_offset, may_be_cleaned_up
from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import BROKER_NOT_PAUSED, NO_RESET
from specs.clauses.rows import over_us
from specs.clauses.words import MS, at, ms, who
from specs.history.row import Row
from specs.plan.traits import Stake, Trait
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "CMT-7"
TITLE = "a crash loses one interval"
STATEMENT = "A broker's crash loses at most the commits, and resets, of one persist interval."
PARTY = Party.BROKER
KEY = Key.LANE
PREMISE = (NO_RESET, BROKER_NOT_PAUSED)
SOURCES = ("docs/sources.md#offsets",)
STAKES = (Stake(Trait.BROKER_KILL),)
KINDS = frozenset({Kind.COMMIT, Kind.FETCH_OFFSET, Kind.RESET})
SETTINGS = (
    "broker_persist_first_ms",
    "broker_persist_ms",
    "dialect",
    "persist_first_ms",
    "persist_ms",
)
NEEDS = frozenset({Kind.COMMIT, Kind.FETCH_OFFSET})
TOLD_OF_REFUSED_COMMITS = True
EXCUSED_BY = frozenset({Kind.FAULT, Kind.TRIM})
CONCLUDES_FROM_ABSENCE = True

REMEMBERED_MAX = 4_096


@dataclass(frozen=True, slots=True)
class LostInCrash(Finding):
    """first: what shows that the broker, or the history, had begun so long before. interval_ms: what may be lost."""

    first: Row | None
    commit: Row
    crash: Row
    answer: Row
    interval_ms: int


class _Answered(NamedTuple):
    """An acknowledged commit or reset, and the first row that the broker had answered in the same life."""

    commit: Row
    alive: Row


class LaneJudge(Judge):
    """Remembers the acknowledged commits of about one interval, and all commits that may follow the oldest of them."""

    __slots__ = (
        "alive",
        "answered",
        "bound_us",
        "clocks_us",
        "first",
        "floor_us",
        "interval_us",
        "keeps_resets",
        "later",
        "longest_us",
        "only_resets",
        "started_us",
        "was_reset",
    )

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        config = self.config
        self.clocks_us = context.info.clock_bound_us
        slack_us = config.schedule_slack_ms * MS + self.clocks_us
        self.started_us = (
            config.stored_first_ms * MS + slack_us
        )  # so long after its start it has written once
        self.interval_us = config.stored_each_ms * MS + slack_us
        self.longest_us = max(self.started_us, self.interval_us)
        self.bound_us = config.delay_bound_ms * MS + self.clocks_us
        self.first: Row | None = None
        self.alive: Row | None = None  # the first row of the broker's present life that it answered
        self.answered: deque[_Answered] = deque()  # by their ends; the first may be on disk
        self.later: deque[Row] = (
            deque()
        )  # by their begins; none that may have been applied after them is missing
        self.floor_us = (
            -1
        )  # commits that are not known, or were forgotten, may have been applied until then
        self.keeps_resets = config.dialect != "4.9"
        self.only_resets = False  # has a reset begun that the broker keeps?
        self.was_reset = False  # has one begun of which nothing is known?

    def begins(self, row: Row) -> Iterable[Finding]:
        if self.first is None:
            self.first = row
            if not self.context.info.closed_world:
                self.floor_us = row.started_us + self.bound_us
        if row.kind is Kind.RESET:
            self.only_resets = True
            if row.value is None or not self.keeps_resets:
                self.was_reset = True
                self.answered.clear()
                self.later.clear()
        if row.kind is not Kind.FETCH_OFFSET and not self.was_reset:
            if row.outcome is not Outcome.REFUSED:
                self.later.append(row)
            if len(self.later) > REMEMBERED_MAX:
                self._forget(self.later.popleft())
        return NOTHING

    def _forget(self, commit: Row) -> None:
        self.floor_us = max(self.floor_us, self._until_us(commit))
        while self.answered and self.answered[0].commit.started_us <= self.floor_us:
            self.answered.popleft()

    def _until_us(self, commit: Row) -> int:
        """Until when the commit may be applied."""
        until_us = max(over_us(commit), commit.started_us + self.bound_us)
        return self.context.may_arrive_until(commit, until_us)

    def ends(self, row: Row) -> Iterable[Finding]:
        if self.was_reset:
            return NOTHING
        if row.outcome in (Outcome.OK, Outcome.REFUSED) and (
            self.alive is None or self._died_since(self.alive)
        ):
            self.alive = None if self._died_since(row) else row
        if row.kind is Kind.FETCH_OFFSET:
            return self._asked(row)
        acknowledged = (
            row.outcome is Outcome.OK and row.value is not None and row.started_us > self.floor_us
        )
        if self.only_resets and row.kind is Kind.COMMIT:
            acknowledged = False  # it may have been held off
        if acknowledged and self.alive is not None:
            self.answered.append(_Answered(row, self.alive))
            self._settle(row)
        return NOTHING

    def _died_since(self, row: Row) -> bool:
        """Has the broker died since the row began?"""
        return self.context.broker_died_since(row.broker, row)

    def _settle(self, now: Row) -> None:
        """Keep one commit that is on disk for certain, all acknowledged ones after it, and what may follow it."""
        answered, old_us = self.answered, over_us(now) - self.longest_us
        spare = 0
        for index in range(1, len(answered)):
            commit = answered[index].commit
            if over_us(commit) > old_us:
                break
            if not self._undone(commit, self.longest_us):
                spare = index
        for _ in range(spare):
            answered.popleft()
        while self.later and self._until_us(self.later[0]) < answered[0].commit.started_us:
            self.later.popleft()

    def _undone(self, commit: Row, interval_us: int) -> bool:
        """Did the broker die before the commit was certainly on its disk?"""
        context, broker = self.context, commit.broker or ""
        until_us = over_us(commit) + interval_us
        if any(
            death.seq_begin > commit.seq_begin for death in context.epoch_deaths.get(broker, ())
        ):
            return True
        deaths = context.broker_deaths.get(broker, ())
        return any(
            death.seq_begin > commit.seq_begin and death.started_us < until_us for death in deaths
        )

    def _interval_us(self, each: _Answered) -> int:
        """How long after the commit it is on disk: one interval only, where the first write was certainly over."""
        begun_us = over_us(each.alive) + self.started_us
        return self.interval_us if begun_us <= each.commit.started_us else self.longest_us

    def _asked(self, row: Row) -> Iterable[Finding]:
        answer = answered_offset(row)
        deaths = self.context.broker_deaths.get(row.broker or "", ())
        crash = next((death for death in reversed(deaths) if death.seq_begin < row.seq_begin), None)
        if crash is None or answer is None:
            return NOTHING
        found = next(
            (each for each in reversed(self.answered) if self._is_written(each, crash)), None
        )
        if found is None or self.context.broker_paused_since(
            row.broker, found.commit.started_us - self.bound_us
        ):
            return NOTHING
        commit = found.commit
        later = [each for each in self.later if self._until_us(each) >= commit.started_us]
        if any(each.value is None for each in later):
            return NOTHING
        values = {each.value or 0 for each in (commit, *later)}
        lowest = min(values)
        if lowest < 0:
            return NOTHING  # a negative value reads as "nothing stored"
        context = self.context
        if context.is_crowded(row.broker) or may_be_cleaned_up(context, row, answer, lowest):
            return NOTHING
        self.opportunities += 1
        if answer in values if self.context.info.closed_world else answer >= lowest:
            return NOTHING
        longest = over_us(commit) + self.longest_us <= crash.started_us
        first = (
            found.alive if not longest else None if self.context.info.closed_world else self.first
        )
        return (LostInCrash(first, commit, crash, row, self._interval_us(found) // MS),)

    def _is_written(self, each: _Answered, crash: Row) -> bool:
        commit, interval_us = each.commit, self._interval_us(each)
        in_time = over_us(commit) + interval_us <= crash.started_us
        return (
            in_time and commit.seq_begin < crash.seq_begin and not self._undone(commit, interval_us)
        )


judge = LaneJudge


def explain(found: LostInCrash) -> str:
    commit, crash, answer = found.commit, found.crash, found.answer
    told = "that nothing was stored" if answered_offset(answer) == -1 else f"{answer.value}"
    did = "reset it to" if commit.kind is Kind.RESET else "committed"
    return (
        f"{who(answer)} asked at {at(answer)} for the offset stored for {answer.lane} and heard {told}; "
        f"{who(commit)} had {did} {commit.value} {ms(crash.started_us - over_us(commit))} before "
        f"{crash.broker} crashed at {at(crash)}, and at most {found.interval_ms} ms may be lost"
    )
