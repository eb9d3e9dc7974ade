"""LIV-2 over columns: a settled reading asks the lane's progress, and the run who of the group lives."""

from __future__ import annotations

from spark_checkers.progress import Incarnation
from spark_checkers.settled import COLUMNS, Settled, places, settled_kernel
from spark_checkers.twin import Twin
from specs.vocabulary import Kind


class Lane(Settled):
    """At stake where the lane had to find another owner, now or before, and the group lives."""

    __slots__ = ()

    def _member(self) -> int | None:
        """The seq at which the living member of the group that started last joined."""
        rows = self.lane.digest.rows
        group = int(rows.group[self.lane.place])
        return self.context.newest_member(rows.words("group")[group], self.now) if group >= 0 else None

    def is_at_stake(self, last: Incarnation) -> bool:
        return (self.handed_over or not self.lives(last)) and self._member() is not None

    def owes(self, last: Incarnation, read: int, marker: int) -> None:
        add, join = last.add, self._member()
        if self.lives(last) or add is None or last.start_row is None or join is None:
            return
        also = [join]
        if last.dropped is None:
            kind = Kind.CRASH if self.has_died(last) else Kind.LEAVE
            end = self.context.latest(self.lane.name(add.client), kind, self.now)
            if end is None:
                return
            also.append(end)
        evidence = [*places(add, last.start_row, last.dropped), read, marker]
        self.findings.violation(evidence, also=also)


TWIN = Twin("LIV-2", COLUMNS, settled_kernel(Lane))
find = TWIN.find
