"""RTY-11 over columns: a stretch that holds nothing that was suspended lately is passed over."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from functools import partial
from typing import Any

from spark_checkers.planting import Changes, Mutant, Planted, Trace
from spark_checkers.twin import Twin
from specs.clauses.intervals import Intervals
from specs.clauses.rows import acknowledges, is_manual
from specs.facts.findings import Findings
from specs.facts.lanes import (
    OP_COLUMNS,
    LaneItems,
    Machine,
    Op,
    Stretch,
    asks_again,
    ends_as,
    machine_kernel,
)
from specs.facts.segments import NO_TEXT, NONE
from specs.history.row import Row
from specs.vocabulary import DLQ_PREFIX, LISTENER_SUSPENDS, RETRY_PREFIX, Kind, Outcome

_KNOWN_AT_ONCE = 1024


class Lane(Machine):
    """The messages that were suspended last; of each incarnation its add and what it has delivered."""

    ENDS = ends_as([Kind.DELIVER], (*LISTENER_SUSPENDS, Outcome.ROLLBACK))

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.counts = not lane.topic.startswith((RETRY_PREFIX, DLQ_PREFIX))
        self.adds: dict[int, Op] = {}
        self.done: dict[int, Intervals] = {}
        self.suspended: OrderedDict[int, Op] = OrderedDict()
        self.highest = -1  # of the offsets that were ever in it

    def takes(self, stretch: Stretch) -> bool:
        if self.highest >= stretch.first.offset and not self.suspended.keys().isdisjoint(
            range(stretch.first.offset, stretch.stop)
        ):
            return False
        self.done.setdefault(stretch.first.incarnation, Intervals()).add(
            stretch.first.offset, stretch.stop
        )
        return True

    def begins(self, op: Op) -> None:
        if op.kind is Kind.RESET:
            self.adds.clear()
            self.done.clear()
            self.suspended.clear()
        elif op.incarnation == NO_TEXT or not self.counts:
            return
        elif op.kind is Kind.ADD:
            self.adds[op.incarnation] = op
            self.done.pop(op.incarnation, None)
        elif op.offset >= 0:
            done = self.done.setdefault(op.incarnation, Intervals())
            before, add = self.suspended.get(op.offset), self.adds.get(op.incarnation)
            if (
                op.offset not in done
                and before is not None
                and add is not None
                and op.reconsume != NONE
            ):
                self.stakes += 1
                if op.reconsume != 0:
                    self.found(before, add, op)
            done.add(op.offset)

    def ends(self, op: Op) -> None:
        if (
            op.kind is Kind.DELIVER
            and asks_again(op)
            and op.incarnation != NO_TEXT
            and op.offset >= 0
        ):
            self.suspended[op.offset] = op
            self.suspended.move_to_end(op.offset)
            self.highest = max(self.highest, op.offset)
            if len(self.suspended) > _KNOWN_AT_ONCE:
                self.suspended.popitem(last=False)


TWIN = Twin(
    "RTY-11", OP_COLUMNS, machine_kernel(Lane, (Kind.DELIVER, Kind.ADD, Kind.RESET), lease=False)
)
find = TWIN.find


# ---- what breaks the clause, planted


def counted_on(trace: Trace) -> Changes:
    """The old owner's last call suspends the message with which the new owner begins, as its first retry."""
    by_lane: dict[object, list[list[Row]]] = {}
    for calls in trace.calls:
        if calls:
            by_lane.setdefault(calls[0].lane, []).append(calls)
    for works in by_lane.values():
        for old, new in itertools.pairwise(sorted(works, key=lambda calls: calls[0].seq_begin)):
            last, first = old[-1], new[0]
            ended = (
                last.seq_end is not None and last.seq_end < first.seq_begin and acknowledges(last)
            )
            follows = last.queue_offset is not None and last.queue_offset + 1 == first.queue_offset
            if ended and follows and not is_manual(last) and first.reconsume_times == 0:
                yield partial(_counted_on, trace, last, first)


def _counted_on(trace: Trace, last: Row, first: Row) -> Planted:
    whose: dict[str, Any] = {
        name: getattr(last, name) for name in ("process", "client_id", "incarnation")
    }
    tried = trace.another(
        first, last, 1, outcome=Outcome.SUSPEND, suspend_ms=trace.info.config.suspend_ms, **whose
    )
    planted = trace.changed({first.seq_begin: {"reconsume_times": 1}})
    return Trace(planted.rows, trace.info).with_more([tried], [first.seq_begin])


DEFECTS = (
    Mutant("counted-on", "RTY-11", "a new owner counts from where the old one stopped", counted_on),
)
