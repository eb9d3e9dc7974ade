"""What was committed longer than one persist interval before a broker's crash is still stored after it.

The broker writes its offsets to disk each persist interval, the first time after the first persist delay. So a
commit that was answered, followed by the longer of the two (and the slack of a timer) without a crash, is on the
disk. When the broker crashes later and somebody then asks for the offset, the answer is not below that commit, nor
below any commit that may have been applied after it. "Nothing stored" is below every offset.

The other half of the interval is the client's, who reports what it finished each persist interval: CMT-2 has that,
and so this clause is the broker's alone. Not claimed where the broker was paused since that commit (its timer stood
still), nor on a lane whose offset was reset. Where so many commits come that not all of them can be remembered, only
newer ones are judged.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.base import BROKER_NOT_PAUSED, MS, NO_RESET, NOTHING, Context, Finding, Judge, at, ms, who
from specs.clauses.commit.fetch_answers_the_last_commit import answered_offset
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "CMT-7"
TITLE = "a crash loses one interval"
STATEMENT = "A broker's crash loses at most the commits of one persist interval."
PARTY = Party.BROKER
KEY = Key.LANE
PREMISE = (NO_RESET, BROKER_NOT_PAUSED)
SOURCES = ("docs/sources.md#offsets",)
KINDS = frozenset({Kind.COMMIT, Kind.FETCH_OFFSET, Kind.RESET})
NEEDS = frozenset({Kind.COMMIT, Kind.FETCH_OFFSET})
CONCLUDES_FROM_ABSENCE = True

REMEMBERED_MAX = 4_096


@dataclass(frozen=True, slots=True)
class LostInCrash(Finding):
    commit: Row
    crash: Row
    answer: Row
    interval_ms: int


class LaneJudge(Judge):
    """Remembers the acknowledged commits of about one interval, and all commits that may follow the oldest of them."""

    __slots__ = ("answered", "bound_us", "floor_us", "interval_us", "later", "was_reset")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        config = self.config
        self.interval_us = (max(config.persist_first_ms, config.persist_ms) + config.schedule_slack_ms) * MS
        self.bound_us = config.delay_bound_ms * MS + context.info.clock_bound_us
        self.answered: deque[Row] = deque()  # acknowledged commits by their ends; the first may be on disk
        self.later: deque[Row] = deque()  # by their begins; none that may have been applied after them is missing
        self.floor_us = -1  # commits that were forgotten may have been applied until then
        self.was_reset = False

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.RESET:
            self.was_reset = True
            self.answered.clear()
            self.later.clear()
        elif row.kind is Kind.COMMIT and row.value is not None and not self.was_reset:
            self.later.append(row)
            if len(self.later) > REMEMBERED_MAX:
                self._forget(self.later.popleft())
        return NOTHING

    def _forget(self, commit: Row) -> None:
        self.floor_us = max(self.floor_us, self._until_us(commit))
        while self.answered and self.answered[0].started_us <= self.floor_us:
            self.answered.popleft()

    def _until_us(self, commit: Row) -> int:
        """Until when the commit may be applied."""
        return max(commit.ended_us or 0, commit.started_us + self.bound_us)

    def ends(self, row: Row) -> Iterable[Finding]:
        if self.was_reset:
            return NOTHING
        if row.kind is Kind.FETCH_OFFSET:
            return self._asked(row)
        if row.outcome is Outcome.OK and row.value is not None and row.started_us > self.floor_us:
            self.answered.append(row)
            self._settle(row)
        return NOTHING

    def _settle(self, now: Row) -> None:
        """Keep one commit that is on disk for certain, all acknowledged ones after it, and what may follow it."""
        answered, old_us = self.answered, (now.ended_us or 0) - self.interval_us
        spare = 0
        for index in range(1, len(answered)):
            if (answered[index].ended_us or 0) > old_us:
                break
            if not self._undone(answered[index]):
                spare = index
        for _ in range(spare):
            answered.popleft()
        while self.later and self._until_us(self.later[0]) < answered[0].started_us:
            self.later.popleft()

    def _undone(self, commit: Row) -> bool:
        """Did the broker crash before the commit was certainly on its disk?"""
        deaths = self.context.broker_deaths.get(commit.broker or "", ())
        until_us = (commit.ended_us or 0) + self.interval_us
        return any(death.seq_begin > commit.seq_begin and death.started_us < until_us for death in deaths)

    def _asked(self, row: Row) -> Iterable[Finding]:
        answer = answered_offset(row)
        deaths = self.context.broker_deaths.get(row.broker or "", ())
        crash = next((death for death in reversed(deaths) if death.seq_begin < row.seq_begin), None)
        if crash is None or answer is None:
            return NOTHING
        commit = next((each for each in reversed(self.answered) if self._is_written(each, crash)), None)
        if commit is None or self.context.broker_paused_since(row.broker, commit.started_us - self.bound_us):
            return NOTHING
        values = [each.value or 0 for each in self.later if self._until_us(each) >= commit.started_us]
        lowest = min([commit.value or 0, *values])
        if lowest < 0:
            return NOTHING  # a negative value reads as "nothing stored"
        self.opportunities += 1
        return (LostInCrash(commit, crash, row, self.interval_us // MS),) if answer < lowest else NOTHING

    def _is_written(self, commit: Row, crash: Row) -> bool:
        in_time = (commit.ended_us or 0) + self.interval_us <= crash.started_us
        return in_time and commit.seq_begin < crash.seq_begin and not self._undone(commit)


judge = LaneJudge


def explain(found: LostInCrash) -> str:
    commit, crash, answer = found.commit, found.crash, found.answer
    told = "that nothing was stored" if answered_offset(answer) == -1 else f"{answer.value}"
    return (
        f"{who(answer)} asked at {at(answer)} for the offset stored for {answer.lane} and heard {told}; "
        f"{who(commit)} had committed {commit.value} {ms(crash.started_us - (commit.ended_us or 0))} before "
        f"{crash.broker} crashed at {at(crash)}, and at most {found.interval_ms} ms may be lost"
    )
