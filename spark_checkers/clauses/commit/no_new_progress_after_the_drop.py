"""CMT-6 over columns: a stretch before the drop moves one number; one that reaches beyond it is gone through."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from spark_checkers.planting import Changes, Mutant, Planted, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.lanes import (
    OP_COLUMNS,
    LaneItems,
    Machine,
    Op,
    Stretch,
    ends_as,
    machine_kernel,
)
from specs.facts.progress import acknowledges
from specs.facts.segments import NO_TEXT, NONE
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome


class Incarnation:
    """One incarnation: the highest offset that it may report, how far it began, its drop.

    roots: the ADD, and the look-up that says where it started where the ADD does not; of an incarnation that may have
    started anywhere there are none. given_up: beyond the highest message that it may have given up without a word.
    asked: look-ups before the drop, less those of which the answer is known.
    """

    __slots__ = ("add", "asked", "delivered", "drop", "finished", "given_up", "lost", "roots")

    def __init__(self, add: Op) -> None:
        self.add = add
        self.roots = [add] if add.value != NONE else []
        self.lost = False
        self.finished = add.value if self.roots else -1
        self.delivered = -1
        self.given_up = -1
        self.drop: Op | None = None
        self.asked: set[int] = set()

    @property
    def is_judged(self) -> bool:
        return bool(self.roots) and not self.asked

    def reached(self, offset: int) -> None:
        self.finished = max(self.finished, offset)

    def started_at(self, look: Op) -> None:
        """A look-up was answered with a stored offset."""
        if not self.roots and not self.lost and look.incarnation != NO_TEXT:
            self.roots = [self.add, look]
        self.reached(look.value)

    def started_anywhere(self) -> None:
        self.roots, self.lost = [], True


class Lane(Machine):
    """The incarnations that were added."""

    ENDS = ends_as([Kind.DELIVER, Kind.FETCH_OFFSET]) | ends_as([Kind.DEAD_LETTER], [Outcome.OK])

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.incarnations: dict[int, Incarnation] = {}
        self.untold = self.untold_letters()

    def takes(self, stretch: Stretch) -> bool:
        mine = self.incarnations.get(stretch.first.incarnation)
        if mine is None or mine.drop is not None:
            return True
        mine.delivered = max(mine.delivered, stretch.stop)
        if stretch.finished_to > stretch.first.offset:
            mine.reached(stretch.finished_to)
        return True

    def begins(self, op: Op) -> None:
        if op.kind is Kind.DEAD_LETTER:
            self.untold = self.context.info.begins_late
        if op.kind is Kind.RESET:
            self.incarnations.clear()
        elif op.kind is Kind.FETCH_OFFSET:
            for each in self._may_ask(op):
                if each.drop is None:
                    each.asked.add(op.place)
        elif op.incarnation == NO_TEXT:
            return
        elif op.kind is Kind.ADD:
            self.incarnations[op.incarnation] = Incarnation(op)
        else:
            mine = self.incarnations.get(op.incarnation)
            if mine is None:
                return
            if op.kind is Kind.DROP and mine.drop is None:
                mine.drop = op
                self.stakes += (
                    mine.is_judged and mine.delivered > mine.finished and not self._filters()
                )
            elif op.kind is Kind.DELIVER and op.offset != NONE:
                mine.delivered = max(mine.delivered, op.offset + 1)
            elif op.kind is Kind.COMMIT and op.value != NONE:
                self._committed(mine, op)

    def _committed(self, mine: Incarnation, op: Op) -> None:
        if mine.drop is None:
            mine.reached(op.value)
        elif mine.is_judged and not op.correction and not self._filters():
            if self.untold and mine.finished < op.value <= mine.given_up:
                return
            self.stakes += 1
            if op.value > mine.finished:
                self.found(*mine.roots, mine.drop, op)

    def _filters(self) -> bool:
        """Has a member told that it passes messages by?"""
        return self.context.is_filtered(self.lane.group, self.now)

    def _may_ask(self, look: Op) -> list[Incarnation]:
        """Who may have looked the offset up: where it is not told, any incarnation of the client."""
        if look.incarnation == NO_TEXT:
            return [each for each in self.incarnations.values() if each.add.client == look.client]
        mine = self.incarnations.get(look.incarnation)
        return [] if mine is None else [mine]

    def _told(self, mine: Incarnation, look: Op) -> None:
        if look.outcome is Outcome.REFUSED or (look.outcome is Outcome.OK and look.value != NONE):
            mine.asked.discard(look.place)
        if mine.drop is not None:
            return
        if look.outcome is Outcome.OK and look.value >= 0:
            mine.started_at(look)
        elif (
            look.outcome is Outcome.REFUSED
            and look.value == -1
            and self.config.consume_from != "first"
        ):
            mine.started_anywhere()

    def ends(self, op: Op) -> None:
        if op.kind is Kind.FETCH_OFFSET:
            for each in self._may_ask(op):
                self._told(each, op)
            return
        mine = self.incarnations.get(op.incarnation)
        if mine is None or op.offset == NONE:
            return
        before = mine.drop is None
        if before and (acknowledges(op) if op.kind is Kind.DELIVER else op.outcome is Outcome.OK):
            mine.reached(op.offset + 1)
        elif before and op.kind is Kind.DELIVER and self.may_be_given_up(op):
            mine.given_up = max(mine.given_up, op.offset + 1)


_KINDS = (
    Kind.ADD,
    Kind.DROP,
    Kind.DELIVER,
    Kind.DEAD_LETTER,
    Kind.COMMIT,
    Kind.FETCH_OFFSET,
    Kind.RESET,
)
TWIN = Twin("CMT-6", OP_COLUMNS, machine_kernel(Lane, _KINDS, lease=False))
find = TWIN.find


# ---- what breaks the clause, planted


def _dropped(trace: Trace) -> Iterator[tuple[Row, Row]]:
    """(the drop of an incarnation, the highest commit before it)."""
    for rows in trace.works:
        drop = next((row for row in rows if row.kind is Kind.DROP), None)
        commits = [
            row for row in rows if row.kind is Kind.COMMIT and row.value and row.detail is None
        ]
        before = [row for row in commits if drop is not None and row.seq_begin < drop.seq_begin]
        if drop is not None and before and rows[0].kind is Kind.ADD:
            yield drop, max(before, key=lambda row: (row.value or 0, row.seq_begin))


def _commit_at(trace: Trace, drop: Row, like: Row, value: int) -> Planted:
    columns: dict[str, Any] = {"value": value, "outcome": Outcome.SENT, "view": None, "code": None}
    return trace.with_more([trace.another(like, drop, 1, **columns)], [drop.seq_begin])


def progress_after_the_drop(trace: Trace) -> Changes:
    for drop, commit in _dropped(trace):
        done = [row for row in trace.lanes[drop.lane] if row.incarnation == drop.incarnation]
        if all(row.detail is None for row in done if row.kind is Kind.COMMIT):
            yield partial(lambda d, c: _commit_at(trace, d, c, (c.value or 0) + 1), drop, commit)


def told_again_after_the_drop(trace: Trace) -> Changes:
    for drop, commit in _dropped(trace):
        yield partial(lambda d, c: _commit_at(trace, d, c, c.value or 0), drop, commit)


DEFECTS = (
    Mutant(
        "progress-after-the-drop",
        "CMT-6",
        "more is committed after the drop",
        progress_after_the_drop,
    ),
)

LOOKALIKES = (
    Mutant(
        "told-again",
        None,
        "the last offset is committed again after the drop",
        told_again_after_the_drop,
    ),
)
