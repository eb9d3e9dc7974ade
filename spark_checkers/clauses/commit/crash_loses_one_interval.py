"""CMT-7 over columns: only commits and look-ups are gone through, and the crashes of the lane's broker."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import Any

from spark_checkers import planting
from spark_checkers.clauses.commit.fetch_answers_the_last_commit import answered_offset
from spark_checkers.planting import Changes, Mutant, Planted, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.lanes import OP_COLUMNS, LaneItems, Machine, Op, machine_kernel
from specs.facts.segments import MS, NONE
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome

REMEMBERED_MAX = 4_096


class Lane(Machine):
    """The acknowledged commits of about one interval, and all commits that may follow the oldest of them."""

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        config, clocks_us = self.config, self.context.info.clock_bound_us
        slack_us = config.schedule_slack_ms * MS + clocks_us
        self.start_us = config.stored_first_ms * MS + slack_us
        self.short_us = config.stored_each_ms * MS + slack_us
        self.long_us = max(self.start_us, self.short_us)
        self.bound_us = config.delay_bound_ms * MS + clocks_us
        self.deaths = self.context.broker_deaths.get(self.broker, ())
        self.epochs = self.context.epoch_deaths(self.broker)
        self.first: Op | None = None
        self.alive: Op | None = None  # the first answer of the broker's present life
        self.answered: deque[tuple[Op, Op]] = (
            deque()
        )  # with the first answer of the life in which it was given
        self.later: deque[Op] = deque()
        self.floor_us = -1
        self.only_resets = False
        self.was_reset = False

    def begins(self, op: Op) -> None:
        if self.first is None:
            self.first = op
            self.floor_us = -1 if self.context.info.closed_world else op.started + self.bound_us
        if op.kind is Kind.RESET:
            self.only_resets = True
            self.was_reset = self.was_reset or op.value == NONE or self.config.dialect == "4.9"
        moves = op.kind is not Kind.FETCH_OFFSET and op.outcome is not Outcome.REFUSED
        if moves and not self.was_reset:
            self.later.append(op)
            if len(self.later) > REMEMBERED_MAX:
                self.floor_us = max(self.floor_us, self._until(self.later.popleft()))
                while self.answered and self.answered[0][0].started <= self.floor_us:
                    self.answered.popleft()

    def ends(self, op: Op) -> None:
        if self.was_reset:
            return
        if op.outcome in (Outcome.OK, Outcome.REFUSED) and (
            self.alive is None or self.broker_died_since(self.alive)
        ):
            self.alive = None if self.broker_died_since(op) else op
        if op.kind is Kind.FETCH_OFFSET:
            self._asked(op)
        elif self.only_resets and op.kind is Kind.COMMIT:
            return  # the broker may have held it off
        elif (
            op.outcome is Outcome.OK
            and op.value != NONE
            and op.started > self.floor_us
            and self.alive is not None
        ):
            self.answered.append((op, self.alive))
            self._settle(op)

    def _until(self, commit: Op) -> int:
        until = max(commit.over_us, commit.started + self.bound_us)
        return self.may_arrive_until(commit, until)

    def _settle(self, now: Op) -> None:
        answered, old_us, spare = self.answered, now.ended - self.long_us, 0
        for index in range(1, len(answered)):
            commit = answered[index][0]
            if commit.ended > old_us:
                break
            if not self._undone(commit, self.long_us):
                spare = index
        for _ in range(spare):
            answered.popleft()
        while self.later and self._until(self.later[0]) < answered[0][0].started:
            self.later.popleft()

    def _undone(self, commit: Op, interval_us: int) -> bool:
        """Did the broker die, up to now, before the commit was certainly on its disk?"""
        if any(commit.begin < seq <= self.now for seq in self.epochs):
            return True
        until = commit.ended + interval_us
        return any(commit.begin < seq <= self.now and at < until for seq, at in self.deaths)

    def _written_after(self, commit: Op, alive: Op) -> int:
        """How long after the commit it is on disk."""
        return self.short_us if alive.ended + self.start_us <= commit.started else self.long_us

    def _asked(self, op: Op) -> None:
        answer = answered_offset(op)
        crash = next(((seq, at) for seq, at in reversed(self.deaths) if seq < op.begin), None)
        if crash is None or answer is None:
            return
        found = next(
            (each for each in reversed(self.answered) if self._is_written(*each, *crash)), None
        )
        if found is None:
            return
        commit, alive = found
        if self.context.broker_paused_since(self.broker, commit.started - self.bound_us, self.now):
            return
        values = {
            commit.value,
            *(each.value for each in self.later if self._until(each) >= commit.started),
        }
        lowest = min(values)  # below 0 where nobody says what one of them stored
        if lowest < 0 or self.context.is_crowded(self.broker, self.now):
            return
        if answer < 0 and self.keeps_nothing_before(lowest):
            return
        self.stakes += 1
        if answer not in values if self.context.info.closed_world else answer < lowest:
            evidence = [commit.place, op.place]
            if commit.ended + self.long_us > crash[1]:
                evidence.append(alive.place)
            elif not self.context.info.closed_world and self.first is not None:
                evidence.append(self.first.place)
            self.findings.violation(evidence, also=[crash[0]])

    def _is_written(self, commit: Op, alive: Op, crash_seq: int, crash_us: int) -> bool:
        interval_us = self._written_after(commit, alive)
        in_time = commit.ended + interval_us <= crash_us
        return in_time and commit.begin < crash_seq and not self._undone(commit, interval_us)


TWIN = Twin(
    "CMT-7",
    OP_COLUMNS,
    machine_kernel(Lane, (Kind.COMMIT, Kind.FETCH_OFFSET, Kind.RESET), lease=False),
)
find = TWIN.find


# ---- what breaks the clause, planted


def written_commit_lost(trace: Trace) -> Changes:
    config = trace.info.config
    interval = (max(config.stored_first_ms, config.stored_each_ms) + config.schedule_slack_ms) * MS
    for commit in planting.acknowledged(trace):
        late = planting.later(trace, commit, interval)
        if late is not None:
            yield partial(_crashed, trace, commit, late)


def _crashed(trace: Trace, commit: Row, after: Row) -> Planted:
    names = ("client_id", "incarnation", "group", "topic", "queue_id", "value", "view", "code")
    nothing: dict[str, Any] = dict.fromkeys(names)
    crash = trace.another(commit, after, 1, **nothing, outcome=Outcome.OK)._replace(
        kind=Kind.CRASH, process=commit.broker, detail=None
    )
    return trace.with_more(
        [crash, planting.looked_up(trace, commit, after, 2, 0)], [commit.seq_begin]
    )


DEFECTS = (
    Mutant(
        "written-commit-lost",
        "CMT-7",
        "an old commit is lost",
        written_commit_lost,
        generated=False,
    ),
)
