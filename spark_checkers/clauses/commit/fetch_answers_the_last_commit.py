"""CMT-9 over columns: only commits and look-ups are gone through, whatever happens to calls."""

from __future__ import annotations

from collections import deque
from functools import partial

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.lanes import OP_COLUMNS, LaneItems, Machine, Op, machine_kernel
from specs.facts.segments import MS, NEVER, NONE
from specs.vocabulary import Kind, Outcome

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
                self.found(None if self.is_closed or self.first is known else self.first, known, op)
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
            self.found(self.nothing, op, name="never-committed")
        return invented


def answered_offset(op: Op) -> int | None:
    """What a look-up was told: the offset, -1 for "nothing stored"; None when that is not known."""
    if op.outcome is Outcome.OK:
        return None if op.value == NONE else op.value
    return -1 if op.outcome is Outcome.REFUSED and op.value == -1 else None


TWIN = Twin(
    "CMT-9",
    OP_COLUMNS,
    machine_kernel(Lane, (Kind.COMMIT, Kind.FETCH_OFFSET, Kind.RESET), lease=False),
)
find = TWIN.find


# ---- what breaks the clause, planted


def commit_forgotten(trace: Trace) -> Changes:
    for commit in planting.acknowledged(trace):
        nobodys = (
            max(row.value or 0 for row in trace.lanes[commit.lane] if row.kind is Kind.COMMIT)
            + 1_000
        )
        yield partial(
            lambda c, v: trace.with_more([planting.looked_up(trace, c, c, 1, v)], [c.seq_begin]),
            commit,
            nobodys,
        )


DEFECTS = (
    Mutant(
        "commit-forgotten", "CMT-9", "a look-up answers what nobody committed", commit_forgotten
    ),
)
