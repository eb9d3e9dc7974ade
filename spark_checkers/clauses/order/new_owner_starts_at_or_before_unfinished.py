"""ORD-4 over columns: only the first delivery of an incarnation is a question; stretches pass by."""

from __future__ import annotations

from spark_checkers.lanes import OP_COLUMNS, LaneItems, Op
from spark_checkers.progress import PROGRESS_KINDS, Incarnation, Progress, queue_kernel
from spark_checkers.rows import NO_TEXT, Findings
from spark_checkers.twin import Twin
from specs.vocabulary import Kind, Outcome


class Group(Progress):
    """One group on the queue, and what is known of its stored offset."""

    __slots__ = ("looked", "stored")

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.stored: Op | None = None
        self.looked: dict[int, Op | None] = {}  # client → what was known when it looked

    def _better(self, known: Op | None, op: Op | None) -> Op | None:
        """The one with the higher offset; one from before a crash of the broker counts for nothing."""
        if known is None or self.broker_died_since(known):
            return op
        if op is None or self.broker_died_since(op) or op.value <= known.value:
            return known
        return op

    def begins(self, op: Op) -> None:
        if op.kind is Kind.COMMIT:
            return
        if op.kind is Kind.FETCH_OFFSET:
            self.looked[op.client] = self.stored
        super().begins(op)
        if op.kind is Kind.ADD and op.incarnation != NO_TEXT:
            mine = self.incarnation(op.incarnation)
            mine.proof = self.looked.pop(op.client) if op.client in self.looked else self.stored

    def first_delivery(self, mine: Incarnation, op: Op) -> None:
        if mine.void or self.was_reset:
            return
        stored = self.stored if mine.add is None else mine.proof
        if stored is None or self.broker_died_since(stored):
            return
        self.stakes += 1
        choices: list[tuple[list[int], int | None]] = []
        kept = self.context.kept_from(self.lane.digest.rows.queue_of(self.lane.place), self.now)
        for offset in self.owed(max(stored.value, kept), op.offset):
            rows = self.unfinished.get(offset)
            if rows:
                choices.append(([stored.place, rows[-1].place, *self.drop_of(rows[-1]), op.place], None))
                break
            if self.sends.row(self.queue, offset, self.now) is not None:
                choices.append(([stored.place, op.place], offset))
                if not self.shared:
                    break
        self.claim(choices)

    def ends(self, op: Op) -> None:
        if op.kind is Kind.COMMIT:
            if op.outcome is Outcome.OK and op.value >= 0:
                self.stored = self._better(self.stored, op)
            return
        super().ends(op)
        if op.kind is Kind.FETCH_OFFSET and op.outcome is Outcome.OK and op.value >= 0:
            self.stored = self._better(self.stored, op)
            if op.client in self.looked:
                self.looked[op.client] = self._better(self.looked[op.client], op)
            if op.incarnation != NO_TEXT:
                mine = self.incarnation(op.incarnation)
                mine.proof = self._better(mine.proof, op)


TWIN = Twin("ORD-4", (*OP_COLUMNS, "delay_level"), queue_kernel(Group, (*PROGRESS_KINDS, Kind.COMMIT)))
find = TWIN.find
