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
    machine_kernel,
    may_put_back,
)
from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.segments import MS, NEVER, NO_TEXT, NONE
from spark_checkers.twin import Twin
from specs.vocabulary import Kind, Outcome

LEAST_MS, MOST_MS = 10, 30_000


def wait_ms(op: Op, default_ms: int) -> int:
    """The pause that the ended call asks for."""
    return own_wait_ms(default_ms if op.suspend < 0 else op.suspend)


def own_wait_ms(wished_ms: int) -> int:
    """The pause that is made of what was wished for."""
    return min(max(wished_ms, LEAST_MS), MOST_MS)


class Lane(Machine):
    """For each incarnation, the suspended messages that have not come again."""

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.suspended: dict[int, dict[int, Op]] = {}

    def takes(self, stretch: Stretch) -> bool:
        mine = self.suspended.get(stretch.first.incarnation, ())
        return not any(stretch.first.offset <= offset < stretch.stop for offset in mine)

    def begins(self, op: Op) -> None:
        if op.kind is Kind.RESET:
            self.suspended.clear()
        elif op.incarnation == NO_TEXT:
            return
        elif op.kind is Kind.ADD:
            self.suspended.pop(op.incarnation, None)
        elif op.kind is Kind.DEAD_LETTER and op.outcome is Outcome.REFUSED:
            return  # its message comes again, and has to wait for that
        elif op.offset >= 0:
            before = self.suspended.get(op.incarnation, {}).pop(op.offset, None)
            if op.kind is Kind.DELIVER and before is not None and before.ended < NEVER:
                self.stakes += 1
                if op.started <= before.ended + (wait_ms(before, self.config.suspend_ms) - 1) * MS:
                    self.found(before, op)

    def ends(self, op: Op) -> None:
        asks = asks_again(op)
        if (
            op.kind is not Kind.DELIVER
            or not (asks or may_put_back(op))
            or op.incarnation == NO_TEXT
            or op.offset < 0
        ):
            return
        mine = self.suspended.get(op.incarnation, {})
        if op.outcome is Outcome.ROLLBACK:  # it may replay at once what was given up unseen
            limit = self.config.max_reconsume_times
            mine = {
                at: each for at, each in mine.items() if limit < 0 or NONE < each.reconsume < limit
            }
        self.suspended[op.incarnation] = {**mine, op.offset: op} if asks else mine


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
