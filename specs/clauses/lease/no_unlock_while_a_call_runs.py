"""A client gives no lease back while its listener call of the lane runs.

Whoever comes next would start beside it (LSE-2). The exception is a shutdown whose waiting time has run out (a
millisecond less counts as well): then the call is left to itself, or cut. A shutdown that is over before that, while
the call runs, is no exception. A call that was cut is over only for the client's book-keeping, whether or not a
shutdown is told; an unlock of the same incarnation counts against it, unless a shutdown has waited long enough. What a
dead process left open says nothing about the next process of that name, nor does what one left to itself that shut
down. Of several calls of a process the one that ends last is looked at: a cut one is passed over once another has ended
after it.

Two findings are told apart from the rest, for clients are built so. *Dropped while running*: the client has dropped the
incarnation whose call runs (some tell that only once they have given the lane back, a timer's slack later at most).
*Late unlock*: it had dropped an earlier incarnation, and was granted the lane anew since.
"""

from __future__ import annotations

from dataclasses import dataclass

from specs.clauses.judging import Finding
from specs.clauses.premises import ORDERLY, Premise
from specs.clauses.words import at, ms, who
from specs.facts.findings import Findings
from specs.facts.lanes import (
    OP_COLUMNS,
    LaneItems,
    Machine,
    Op,
    Stretch,
    each_lane,
    ended_before,
    ends_as,
)
from specs.facts.segments import MS, NO_TEXT
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "LSE-15"
TITLE = "no unlock while a call runs"
STATEMENT = (
    "A client does not give a lane's lease back while its listener call runs, save in a shutdown whose waiting time "
    "ran out."
)
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (
    ORDERLY,
    Premise(
        "waiting time",
        "a shutdown waits as long as the configuration says; after that it may unlock",
        told_by=frozenset({Kind.CRASH, Kind.LEAVE}),
    ),
)
SOURCES = ("docs/sources.md#client-leases",)
KINDS = frozenset({Kind.UNLOCK, Kind.DELIVER, Kind.DROP, Kind.LOCK})
SETTINGS = ("shutdown_wait_ms",)
NEEDS = frozenset({Kind.DELIVER, Kind.UNLOCK})
COLUMNS = OP_COLUMNS


@dataclass(frozen=True, slots=True)
class UnlockedTooSoon(Finding):
    running: Row
    unlock: Row


@dataclass(frozen=True, slots=True)
class DroppedWhileRunning(UnlockedTooSoon):
    """drop: of the incarnation whose call runs."""

    drop: Row


@dataclass(frozen=True, slots=True)
class LateUnlock(UnlockedTooSoon):
    """drop: of an earlier incarnation. grant: after it."""

    drop: Row
    grant: Row


class Lane(Machine):
    """Of each client the call that ends last of all its process's calls; its last drop, and the grant since.

    undecided: a call and an unlock during it, until the client's next row, which may be the drop that names it.
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
            self.broken(UnlockedTooSoon, running=call, unlock=unlock)

    def _decide(self, op: Op) -> None:
        """The unlock that waited for the client's next row, by its name."""
        if op.client not in self.undecided:
            return
        call, unlock = self.undecided.pop(op.client)
        dropped = (
            op.kind is Kind.DROP
            and op.incarnation != NO_TEXT
            and op.incarnation == call.incarnation
        )
        if dropped and op.started - unlock.started <= self.config.schedule_slack_ms * MS:
            self.broken(DroppedWhileRunning, running=call, unlock=unlock, drop=op)
        else:
            self.broken(UnlockedTooSoon, running=call, unlock=unlock)

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
        was_cut = (
            last.outcome is Outcome.CUT
            and last.incarnation != NO_TEXT
            and last.incarnation == op.incarnation
        )
        if ended_before(last, op) and not was_cut:
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
            self.broken(DroppedWhileRunning, running=last, unlock=op, drop=drop)
        elif drop is not None and grant is not None:
            self.broken(LateUnlock, running=last, unlock=op, drop=drop, grant=grant)
        else:
            self.undecided[op.client] = last, op


judge = each_lane(Lane, KINDS, lease=False)


def explain(found: UnlockedTooSoon) -> str:
    running, unlock = found.running, found.unlock
    why = ""
    if isinstance(found, DroppedWhileRunning):
        why = f"; it dropped the lane at {at(found.drop)}"
    elif isinstance(found, LateUnlock):
        why = f"; it had dropped it at {at(found.drop)}, and been granted it anew at {at(found.grant)}"
    return (
        f"{who(unlock)} gave {unlock.lane} back at {at(unlock)}, {ms(unlock.started_us - running.started_us)} after it "
        f"had begun offset {running.queue_offset}, whose listener call was still running{why}"
    )
