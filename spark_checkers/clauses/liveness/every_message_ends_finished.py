"""LIV-1 over columns: a settled reading asks the lane's progress, which folds uneventful calls away."""

from __future__ import annotations

from spark_checkers.progress import Incarnation
from spark_checkers.settled import COLUMNS, Settled, places, settled_kernel
from spark_checkers.twin import Twin


class Lane(Settled):
    """At stake where the last incarnation still works."""

    __slots__ = ()

    def is_at_stake(self, last: Incarnation) -> bool:
        return self.lives(last)

    def owes(self, last: Incarnation, read: int, marker: int) -> None:
        if last.start_row is not None:
            self.findings.violation([*places(last.add, last.start_row), read, marker])


TWIN = Twin("LIV-1", COLUMNS, settled_kernel(Lane))
find = TWIN.find
