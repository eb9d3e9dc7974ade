"""RTY-8 over columns: nothing but dead letters is looked at, in runs without a limit."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.lanes import (
    BEGIN,
    OP_COLUMNS,
    LaneItems,
    Machine,
    Op,
    Stretch,
    asks_again,
    machine_kernel,
)
from spark_checkers.planting import Changes, Mutant, Planted, Trace
from spark_checkers.rows import NO_TEXT, Findings
from spark_checkers.twin import Twin
from specs.vocabulary import LISTENER_SUSPENDS, Kind


class Lane(Machine):
    """Of each incarnation the messages of its last call, and those that have to come again."""

    __slots__ = ("call", "known", "whole")

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.known: dict[int, dict[int, Op]] = {}
        self.call: dict[int, int] = {}
        # Of a stretch only the last row is known: not enough where a call may hold more and any may be given up.
        self.whole = self.config.batch == 1 or not any(
            what == BEGIN and op.kind is Kind.DEAD_LETTER for what, op in lane.items
        )

    def takes(self, stretch: Stretch) -> bool:
        name = stretch.first.incarnation
        again = any(
            stretch.first.offset <= offset < stretch.stop for offset in self.known.get(name, ())
        )
        if again or not self.whole or self.call.get(name) == stretch.first.op:
            return False
        self._deliver(stretch.last)
        return True

    def _deliver(self, op: Op) -> None:
        known = self.known.get(op.incarnation, {})
        if self.call.get(op.incarnation) != op.op:
            self.call[op.incarnation] = op.op
            known = {offset: before for offset, before in known.items() if asks_again(before)}
        self.known[op.incarnation] = {**known, op.offset: op}

    def begins(self, op: Op) -> None:
        if op.incarnation == NO_TEXT:
            return
        if op.kind is Kind.ADD:
            self.known.pop(op.incarnation, None)
        elif op.offset < 0:
            return
        elif op.kind is Kind.DELIVER:
            self._deliver(op)
        else:
            last = self.known.get(op.incarnation, {}).get(op.offset)
            if last is not None:
                self.stakes += last.outcome not in LISTENER_SUSPENDS
                self.found(last, op)

    def ends(self, op: Op) -> None:
        if (
            op.kind is Kind.DELIVER
            and op.incarnation != NO_TEXT
            and op.outcome in LISTENER_SUSPENDS
        ):
            self.stakes += 1


TWIN = Twin(
    "RTY-8",
    OP_COLUMNS,
    machine_kernel(Lane, (Kind.DELIVER, Kind.DEAD_LETTER, Kind.ADD), lease=False),
)
find = TWIN.find


# ---- what breaks the clause, planted


def given_up_without_limit(trace: Trace) -> Changes:
    for _last, letter, after in planting.given_up(trace):
        about = (letter.seq_begin, after.seq_begin)
        yield partial(lambda a: Planted(trace.rows, a), about)


DEFECTS = (
    Mutant(
        "no-limit",
        "RTY-8",
        "the run had no limit",
        given_up_without_limit,
        config={"max_reconsume_times": -1},
    ),
)
