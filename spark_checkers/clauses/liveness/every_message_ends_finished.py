"""LIV-1 over columns: a settled reading asks the lane's progress, which folds uneventful calls away."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.facts.progress import Incarnation
from specs.facts.settled import COLUMNS, Settled, places, settled_kernel


class Lane(Settled):
    """At stake where the last incarnation still works."""

    def is_at_stake(self, last: Incarnation) -> bool:
        add = last.add
        if add is None or not self.lives(last):
            return False
        name = self.lane.name(add.client)
        return not self.context.is_of_an_old_life(name, self.lane.group, add.begin, self.now)

    def is_done(self, offset: int) -> bool:
        return offset in self.finished or offset in self.worked

    def counts_from(self, last: Incarnation) -> int:
        return min(last.start or 0, self._first(last).start or 0)

    def _first(self, last: Incarnation) -> Incarnation:
        """The incarnation with the lowest start, where everybody is recorded and the group owes all messages."""
        first = last
        if self.context.info.closed_world and self.config.consume_from == "first":
            for each in self.incarnations.values():
                if (
                    each.add is not None
                    and each.start is not None
                    and not each.asked
                    and each.start < (first.start or 0)
                ):
                    first = each
        return first

    def owes(self, last: Incarnation, read: int, marker: int) -> None:
        offset = int(self.lane.digest.rows.offset[read])
        first = last if offset >= (last.start or 0) else self._first(last)
        if first.start_row is not None and offset >= (first.start or 0):
            where = [*places(first.add, first.start_row), read, marker]
            self.findings.violation(where, certain=self.rests_for_certain)


TWIN = Twin("LIV-1", COLUMNS, settled_kernel(Lane))
find = TWIN.find


# ---- what breaks the clause, planted


def never_delivered(trace: Trace) -> Changes:
    for mine, gone in planting.last_works(trace):
        yield partial(lambda g, a: trace.without(g, [a.seq_begin]), gone, mine[0])


DEFECTS = (
    Mutant(
        "never-delivered",
        "LIV-1",
        "the last message is never delivered",
        never_delivered,
        generated=False,
    ),
)
