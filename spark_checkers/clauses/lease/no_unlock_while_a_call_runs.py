"""LSE-15 over columns: unlocks are few, and of a stretch only the last call may run while one begins."""

from __future__ import annotations

from functools import partial
from typing import Any

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.lanes import (
    OP_COLUMNS,
    LaneItems,
    Machine,
    Op,
    Stretch,
    ended_before,
    ends_as,
    machine_kernel,
)
from specs.facts.segments import MS, NO_TEXT
from specs.vocabulary import Kind, Outcome


class Lane(Machine):
    """Of each client's calls the one that ends last; its last drop, and the grant since.

    undecided: an unlock during a call, as long as nothing else of its client has come that tells more of it.
    """

    ENDS = ends_as([Kind.LOCK], [Outcome.OK])
    STAKE = Kind.UNLOCK

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.calls: dict[int, Op] = {}
        self.undecided: dict[int, tuple[Op, Op]] = {}
        self.drops: dict[int, Op] = {}
        self.regained: dict[int, Op] = {}
        self.wait_us = (self.config.shutdown_wait_ms - 1) * MS

    def finish(self) -> None:
        for call, unlock in self.undecided.values():
            self.found(call, unlock)

    def _decide(self, op: Op) -> None:
        if op.client not in self.undecided:
            return
        call, unlock = self.undecided.pop(op.client)
        dropped = (
            op.kind is Kind.DROP
            and op.incarnation != NO_TEXT
            and op.incarnation == call.incarnation
        )
        if dropped and op.started - unlock.started <= self.config.schedule_slack_ms * MS:
            self.found(call, unlock, op, name="dropped-while-running")
        else:
            self.found(call, unlock)

    def takes(self, stretch: Stretch) -> bool:
        self._decide(stretch.first)
        self._runs(stretch.last)
        return True

    def _runs(self, op: Op) -> None:
        last = self.calls.get(op.client)
        if last is None or op.end >= last.end or self._is_of_a_former_process(last, op):
            self.calls[op.client] = op

    def _is_of_a_former_process(self, last: Op, op: Op) -> bool:
        name = self.lane.name(op.client)
        return self.context.is_of_an_old_life(name, self.lane.group, last.begin, op.begin)

    def begins(self, op: Op) -> None:
        if op.client == NO_TEXT:
            return
        self._decide(op)
        if op.kind is Kind.DELIVER:
            self._runs(op)
        elif op.kind is Kind.DROP:
            self.drops[op.client] = op
            self.regained.pop(op.client, None)
        elif op.kind is Kind.UNLOCK:
            self._unlocks(op)

    def ends(self, op: Op) -> None:
        if op.kind is Kind.LOCK and op.outcome is Outcome.OK and op.client in self.drops:
            self.regained[op.client] = op

    def _unlocks(self, op: Op) -> None:
        last = self.calls.get(op.client)
        if last is None or self.is_of_an_old_life(op.client, last):
            return
        self.stakes += 1
        cut = (
            last.outcome is Outcome.CUT
            and last.incarnation != NO_TEXT
            and last.incarnation == op.incarnation
        )
        if ended_before(last, op) and not cut:
            return
        left_us = self.context.left_us(self.lane.name(op.client), self.lane.group, self.now)
        if op.started - left_us >= self.wait_us:
            return
        drop, grant = self.drops.get(op.client), self.regained.get(op.client)
        if (
            drop is not None
            and drop.incarnation != NO_TEXT
            and drop.incarnation == last.incarnation
        ):
            self.found(last, op, drop, name="dropped-while-running")
        elif drop is not None and grant is not None:
            self.found(last, op, drop, grant, name="late-unlock")
        else:
            self.undecided[op.client] = last, op


_KINDS = (Kind.UNLOCK, Kind.DELIVER, Kind.DROP, Kind.LOCK)
TWIN = Twin("LSE-15", OP_COLUMNS, machine_kernel(Lane, _KINDS, lease=False))
find = TWIN.find


# ---- what breaks the clause, planted


def unlock_during_a_call(trace: Trace) -> Changes:
    unsaid: dict[str, Any] = dict.fromkeys(
        (*planting.MESSAGE, "reconsume_times", "commit_mode", "attempt", "suspend_ms")
    )
    for calls in trace.calls:
        for row in calls:
            if row.seq_end is not None and row.outcome is Outcome.SUCCESS:
                columns = {**unsaid, "kind": Kind.UNLOCK, "outcome": Outcome.SENT}
                yield partial(
                    lambda r, c: trace.with_more(
                        [trace.another(r, r, 1, at_end=False, **c)], [r.seq_begin]
                    ),
                    row,
                    columns,
                )


DEFECTS = (
    Mutant(
        "unlock-during-call",
        "LSE-15",
        "a lane is given back while its call runs",
        unlock_during_a_call,
    ),
)
