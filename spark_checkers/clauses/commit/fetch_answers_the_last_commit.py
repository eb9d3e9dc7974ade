"""CMT-9 over columns: only commits and look-ups are gone through, whatever happens to calls."""

from __future__ import annotations

from collections import deque

from spark_checkers.lanes import OP_COLUMNS, LaneItems, Machine, Op, machine_kernel
from spark_checkers.rows import MS, NEVER, NONE, Findings
from spark_checkers.twin import Twin
from specs.vocabulary import Kind, Outcome

REMEMBERED_MAX = 1_024


class Lane(Machine):
    """The last acknowledged commit, those that may have been applied after it, and the questions under way."""

    __slots__ = ("asked", "bound_us", "floor_us", "last", "later", "was_reset")

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.bound_us = self.config.delay_bound_ms * MS + self.context.info.clock_bound_us
        self.last: Op | None = None
        self.later: deque[Op] = deque()
        self.floor_us = -1
        self.asked: dict[int, tuple[Op | None, set[int]]] = {}
        self.was_reset = False

    def begins(self, op: Op) -> None:
        if op.kind is Kind.RESET:
            self.was_reset = True
        elif self.was_reset:
            return
        elif op.kind is Kind.FETCH_OFFSET:
            self.asked[op.place] = (self.last, {each.value for each in self.later})
        elif op.value != NONE:
            self.later.append(op)
            for _, values in self.asked.values():
                values.add(op.value)
            if len(self.later) > REMEMBERED_MAX:
                self.floor_us = max(self.floor_us, self._until(self.later.popleft()))
                if self.last is not None and self.last.started <= self.floor_us:
                    self.last = None

    def ends(self, op: Op) -> None:
        if self.was_reset:
            return
        if op.kind is Kind.FETCH_OFFSET:
            self._answered(op)
        elif op.outcome is Outcome.OK and op.value != NONE and op.started > self.floor_us:
            self._acknowledged(op)

    def _acknowledged(self, op: Op) -> None:
        if self.last is None or op.begin > self.last.begin:
            self.last = op
            while self.later and self._until(self.later[0]) < op.started:
                self.later.popleft()

    def _until(self, commit: Op) -> int:
        return max(commit.ended if commit.ended < NEVER else 0, commit.started + self.bound_us)

    def _answered(self, op: Op) -> None:
        last, values = self.asked.pop(op.place, (None, set()))
        answer = answered_offset(op)
        if last is None or answer is None or min(values, default=-1) < 0 or self.broker_died_since(last):
            return
        if self.context.broker_paused_since(self.broker, last.started - self.bound_us, self.now):
            return
        self.stakes += 1
        if answer not in values:
            self.found(last, op)


def answered_offset(op: Op) -> int | None:
    """What a look-up was told: the offset, -1 for "nothing stored"; None when that is not known."""
    if op.outcome is Outcome.OK:
        return None if op.value == NONE else op.value
    return -1 if op.outcome is Outcome.REFUSED and op.value == -1 else None


TWIN = Twin("CMT-9", OP_COLUMNS, machine_kernel(Lane, (Kind.COMMIT, Kind.FETCH_OFFSET, Kind.RESET), lease=False))
find = TWIN.find
