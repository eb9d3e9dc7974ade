"""CMT-7 over columns: only commits and look-ups are gone through, and the crashes of the lane's broker."""

from __future__ import annotations

from collections import deque

from spark_checkers.clauses.commit.fetch_answers_the_last_commit import answered_offset
from spark_checkers.lanes import OP_COLUMNS, LaneItems, Machine, Op, machine_kernel
from spark_checkers.rows import MS, NEVER, NONE, Findings
from spark_checkers.twin import Twin
from specs.vocabulary import Kind, Outcome

REMEMBERED_MAX = 4_096


class Lane(Machine):
    """The acknowledged commits of about one interval, and all commits that may follow the oldest of them."""

    __slots__ = ("answered", "bound_us", "deaths", "floor_us", "interval_us", "later", "was_reset")

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        config = self.config
        self.interval_us = (max(config.persist_first_ms, config.persist_ms) + config.schedule_slack_ms) * MS
        self.bound_us = config.delay_bound_ms * MS + self.context.info.clock_bound_us
        self.deaths = self.context.broker_deaths.get(self.broker, ())
        self.answered: deque[Op] = deque()
        self.later: deque[Op] = deque()
        self.floor_us = -1
        self.was_reset = False

    def begins(self, op: Op) -> None:
        if op.kind is Kind.RESET:
            self.was_reset = True
        elif op.kind is Kind.COMMIT and op.value != NONE and not self.was_reset:
            self.later.append(op)
            if len(self.later) > REMEMBERED_MAX:
                self.floor_us = max(self.floor_us, self._until(self.later.popleft()))
                while self.answered and self.answered[0].started <= self.floor_us:
                    self.answered.popleft()

    def ends(self, op: Op) -> None:
        if self.was_reset:
            return
        if op.kind is Kind.FETCH_OFFSET:
            self._asked(op)
        elif op.outcome is Outcome.OK and op.value != NONE and op.started > self.floor_us:
            self.answered.append(op)
            self._settle(op)

    def _until(self, commit: Op) -> int:
        return max(commit.ended if commit.ended < NEVER else 0, commit.started + self.bound_us)

    def _settle(self, now: Op) -> None:
        answered, old_us, spare = self.answered, now.ended - self.interval_us, 0
        for index in range(1, len(answered)):
            if answered[index].ended > old_us:
                break
            if not self._undone(answered[index]):
                spare = index
        for _ in range(spare):
            answered.popleft()
        while self.later and self._until(self.later[0]) < answered[0].started:
            self.later.popleft()

    def _undone(self, commit: Op) -> bool:
        """Did the broker crash, up to now, before the commit was certainly on its disk?"""
        until = commit.ended + self.interval_us
        return any(commit.begin < seq <= self.now and at < until for seq, at in self.deaths)

    def _asked(self, op: Op) -> None:
        answer = answered_offset(op)
        crash = next(((seq, at) for seq, at in reversed(self.deaths) if seq < op.begin), None)
        if crash is None or answer is None:
            return
        commit = next((each for each in reversed(self.answered) if self._is_written(each, *crash)), None)
        if commit is None or self.context.broker_paused_since(self.broker, commit.started - self.bound_us, self.now):
            return
        values = [each.value for each in self.later if self._until(each) >= commit.started]
        lowest = min([commit.value, *values])
        if lowest < 0:
            return
        self.stakes += 1
        if answer < lowest:
            self.findings.violation([commit.place, op.place], also=[crash[0]])

    def _is_written(self, commit: Op, crash_seq: int, crash_us: int) -> bool:
        in_time = commit.ended + self.interval_us <= crash_us
        return in_time and commit.begin < crash_seq and not self._undone(commit)


TWIN = Twin("CMT-7", OP_COLUMNS, machine_kernel(Lane, (Kind.COMMIT, Kind.FETCH_OFFSET, Kind.RESET), lease=False))
find = TWIN.find
