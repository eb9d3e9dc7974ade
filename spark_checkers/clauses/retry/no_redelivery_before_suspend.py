"""RTY-1 over columns: a stretch that holds nothing that is suspended is passed over."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.findings import Findings
from spark_checkers.lanes import (
    OP_COLUMNS,
    LaneItems,
    Machine,
    Op,
    Stretch,
    asks_again,
    ends_as,
    machine_kernel,
    may_put_back,
    may_put_back_unseen,
)
from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.segments import MS, NEVER, NO_TEXT, NONE
from spark_checkers.twin import Twin
from specs.vocabulary import LISTENER_SUSPENDS, Kind, Outcome

LEAST_MS, MOST_MS = 10, 30_000


def wait_ms(op: Op, default_ms: int) -> int:
    """The pause that the ended call asks for."""
    return own_wait_ms(default_ms if op.suspend < 0 else op.suspend)


def own_wait_ms(wished_ms: int) -> int:
    """The pause that is made of what was wished for."""
    return min(max(wished_ms, LEAST_MS), MOST_MS)


class Life:
    """From an ADD, or the first call after a reset, on: what is suspended, and has not come again.

    born: calls that began before are another life's. rolls: nobody can say that it never rolled back by hand.
    """

    __slots__ = ("born", "rolls", "suspended")

    def __init__(self, born: int) -> None:
        self.born = born
        self.rolls = False
        self.suspended: dict[int, Op] = {}


class Lane(Machine):
    """Compares what comes again with what its incarnation's life has suspended."""

    ENDS = ends_as([Kind.DELIVER], (*LISTENER_SUSPENDS, Outcome.ROLLBACK))

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.lives: dict[int, Life] = {}

    def takes(self, stretch: Stretch) -> bool:
        life = self.lives.get(stretch.first.incarnation)
        mine = life.suspended if life is not None else ()
        return not any(stretch.first.offset <= offset < stretch.stop for offset in mine)

    def begins(self, op: Op) -> None:
        if op.kind is Kind.RESET:
            self.lives.clear()
        elif op.incarnation == NO_TEXT:
            return
        elif op.kind is Kind.ADD:
            self.lives[op.incarnation] = Life(op.begin)
        elif op.kind is Kind.DEAD_LETTER and op.outcome is Outcome.REFUSED:
            return  # its message comes again, and has to wait for that
        elif op.offset >= 0:
            life = self.lives.setdefault(op.incarnation, Life(op.begin))
            before = life.suspended.pop(op.offset, None)
            if op.kind is Kind.DELIVER:
                if before is not None and before.ended < NEVER:
                    self._again(life, before, op)
                life.rolls |= may_put_back_unseen(op)

    def _is_left(self, op: Op) -> bool:
        """May it have been given up unseen, so that a ROLLBACK may replay it at once?"""
        limit = self.config.max_reconsume_times
        return limit >= 0 and not NONE < op.reconsume < limit

    def _again(self, life: Life, before: Op, op: Op) -> None:
        if life.rolls and self._is_left(before):
            return
        self.stakes += 1
        if op.started <= before.ended + (wait_ms(before, self.config.suspend_ms) - 1) * MS:
            self.found(before, op)

    def ends(self, op: Op) -> None:
        if op.kind is not Kind.DELIVER or op.incarnation == NO_TEXT or op.offset < 0:
            return
        life = self.lives.get(op.incarnation)
        if life is None or op.begin < life.born:
            return
        if may_put_back(op):
            life.suspended = {
                at: each for at, each in life.suspended.items() if not self._is_left(each)
            }
        if asks_again(op):
            life.suspended[op.offset] = op


_KINDS = (Kind.DELIVER, Kind.DEAD_LETTER, Kind.ADD, Kind.RESET)
TWIN = Twin("RTY-1", OP_COLUMNS, machine_kernel(Lane, _KINDS, lease=False))
find = TWIN.find


# ---- what breaks the clause, planted


def early_redelivery(trace: Trace) -> Changes:
    for before, row in planting.redelivered(trace):
        waited_ms = (row.started_us - (before.ended_us or 0)) // MS
        if waited_ms < 29_000:
            change = {before.seq_begin: {"suspend_ms": max(10, waited_ms + 50)}}
            about = (before.seq_begin, row.seq_begin)
            yield partial(trace.changed, change, about)


def short_suspend(trace: Trace) -> Changes:
    config = trace.info.config
    soon_us = (
        min(config.suspend_ms, config.schedule_slack_ms) * MS
    )  # what comes later may be too late for 10 ms
    for before, row in planting.redelivered(trace):
        if 11 * MS < row.started_us - (before.ended_us or 0) <= soon_us:
            change = {before.seq_begin: {"suspend_ms": 3}}
            yield partial(trace.changed, change)


DEFECTS = (
    Mutant(
        "early-redelivery", "RTY-1", "a suspended message comes again too early", early_redelivery
    ),
)

LOOKALIKES = (Mutant("short-suspend", None, "a suspend of 3 ms means 10 ms", short_suspend),)
