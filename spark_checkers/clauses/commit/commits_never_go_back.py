"""CMT-4 over columns: whatever happens to calls, only commits and what clears them are looked at."""

from __future__ import annotations

from spark_checkers.lanes import OP_COLUMNS, LaneItems, Machine, Op, machine_kernel
from spark_checkers.rows import MS, NO_TEXT, NONE, Findings
from spark_checkers.twin import Twin
from specs.vocabulary import Kind, Outcome


class Lane(Machine):
    """For each incarnation, the highest commit that has ended; apart from it one-way ones, as long as they are new."""

    __slots__ = ("highest", "recent", "slack_us")

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.highest: dict[int, Op] = {}
        self.recent: dict[int, list[Op]] = {}
        self.slack_us = self.config.schedule_slack_ms * MS

    def begins(self, op: Op) -> None:
        if op.kind is Kind.RESET:
            self.highest.clear()
            self.recent.clear()
        elif op.incarnation == NO_TEXT:
            return
        elif op.kind is Kind.ADD or op.correction:
            self._forget(op.incarnation)
        elif op.kind is Kind.COMMIT and op.value != NONE:
            self._committed(op)

    def _committed(self, op: Op) -> None:
        new: list[Op] = []
        for each in self.recent.pop(op.incarnation, []):
            if each.started + self.slack_us <= op.started:
                self._ended(each)
            else:
                new.append(each)
        if new:
            self.recent[op.incarnation] = new
        best = self.highest.get(op.incarnation)
        if not self._with_a_pull(op):
            for each in new:
                if best is None or each.value > best.value:
                    best = each
        if best is not None:
            self.stakes += 1
            if op.value < best.value:
                self.found(best, op)

    def _with_a_pull(self, op: Op) -> bool:
        """Did a pull carry the commit along? Then its value may be older than the commit."""
        return self.lane.digest.rows.name_of("view", op.place) == "pull"

    def _forget(self, incarnation: int) -> None:
        self.highest.pop(incarnation, None)
        self.recent.pop(incarnation, None)

    def _ended(self, op: Op) -> None:
        highest = self.highest.get(op.incarnation)
        if highest is None or op.value > highest.value:
            self.highest[op.incarnation] = op

    def ends(self, op: Op) -> None:
        if op.incarnation == NO_TEXT:
            return
        if op.kind is Kind.FETCH_OFFSET:
            self._forget(op.incarnation)
        elif (
            op.kind is Kind.COMMIT
            and op.value != NONE
            and not op.correction
            and op.outcome is not Outcome.REFUSED
        ):
            if op.outcome is Outcome.SENT:
                self.recent.setdefault(op.incarnation, []).append(op)
            else:
                self._ended(op)


_KINDS = (Kind.COMMIT, Kind.ADD, Kind.RESET, Kind.FETCH_OFFSET)
TWIN = Twin("CMT-4", (*OP_COLUMNS, "view"), machine_kernel(Lane, _KINDS, lease=False))
find = TWIN.find
