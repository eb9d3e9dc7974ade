"""CMT-8 over columns: look-ups, adds and first pulls are gone through; sends are looked up when one is in question."""

from __future__ import annotations

from functools import partial

import numpy as np

from spark_checkers import planting
from spark_checkers.clauses.commit.fetch_answers_the_last_commit import answered_offset
from spark_checkers.planting import STRANGER, Changes, Mutant, Planted, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.lanes import (
    OP_COLUMNS,
    LaneItems,
    Machine,
    Op,
    ended_before,
    ends_as,
    machine_kernel,
)
from specs.facts.progress import Sends
from specs.facts.segments import MS, NO_TEXT, NONE
from specs.history.row import Row
from specs.vocabulary import RETRY_PREFIX, Kind, Outcome

YOUNG_US = 60_000 * MS
HALF_AN_HOUR_US = 30 * 60_000 * MS


class Lane(Machine):
    """Who is about to start, and what it was told."""

    ENDS = ends_as([Kind.FETCH_OFFSET])

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        rows = lane.digest.rows
        self.bound_us = self.config.delay_bound_ms * MS + self.context.info.clock_bound_us
        self.sent = rows.shared(Sends).of_queue(int(rows.queue[lane.place]))
        first = self.sent[rows.offset[self.sent] == 0]
        self.first = int(first[np.argmin(rows.end[first])]) if len(first) else None
        self.start = self._start()
        self.lookups: dict[int, tuple[Op, int | None]] = {}
        self.adds: dict[
            int, tuple[Op, Op | None]
        ] = {}  # with a look-up before it that had found nothing stored
        self.anchors: dict[int, Op] = {}

    def _start(self) -> str:
        """What the group's rule says where nothing is stored."""
        retry = self.lane.topic.startswith(RETRY_PREFIX)
        match self.config.consume_from:
            case "first":
                return "zero"
            case "last":
                return "zero" if retry else "end"
            case _:
                return "end" if retry else "time"

    def begins(self, op: Op) -> None:
        if op.kind is Kind.RESET:
            self.lookups, self.adds, self.anchors = {}, {}, {}
        elif op.kind is Kind.FETCH_OFFSET:
            if op.incarnation == NO_TEXT:
                self.lookups[op.client] = (op, self._last_seen(op))
            else:
                self.anchors[op.incarnation] = op
        elif op.incarnation == NO_TEXT:
            return
        elif op.kind is Kind.ADD:
            self.anchors.pop(op.incarnation, None)
            lookup, last = self.lookups.pop(op.client, (None, None))
            if lookup is not None and not ended_before(lookup, op):
                lookup = None
            empty = lookup is not None and answered_offset(lookup) == -1
            self.adds[op.incarnation] = (op, lookup if empty else None)
            if lookup is not None and op.value != NONE:
                self._added(lookup, last, op)
        elif op.kind is Kind.PULL:
            add, nothing = self.adds.pop(op.incarnation, (None, None))
            anchor = self.anchors.pop(op.incarnation, None)
            if add is not None and anchor is not None and ended_before(anchor, op):
                self._pulled(add, nothing, anchor, op)

    def _last_seen(self, lookup: Op) -> int | None:
        """Of the sends that were acknowledged longer ago than the bound, the one with the highest offset."""
        rows = self.lane.digest.rows
        seen = self.sent[
            (rows.end[self.sent] < lookup.begin)
            & (rows.ended[self.sent] + self.bound_us <= lookup.started)
        ]
        if not len(seen):
            return None
        highest = seen[rows.offset[seen] == rows.offset[seen].max()]
        return int(highest[np.argmin(rows.end[highest])])

    def _lives(self, send: int) -> bool:
        rows = self.lane.digest.rows
        epoch = int(rows.number("broker_epoch")[send])
        return not self.context.broker_died_since(
            self.broker, int(rows.begin[send]), epoch, self.now
        )

    def _added(self, lookup: Op, last: int | None, op: Op) -> None:
        self.stakes += 1
        told = answered_offset(lookup)
        if told is None or told >= 0 or self.start == "zero":
            if op.value != (0 if told == -1 else told):
                self.found(lookup, op)
            return
        rows = self.lane.digest.rows
        if last is None or not self._lives(last):
            return
        offset = int(rows.offset[last])
        since = (
            int(rows.started[last])
            >= op.started + self.context.info.clock_bound_us - HALF_AN_HOUR_US
        )
        kept = self._kept_from()
        if op.value <= offset if self.start == "end" else since and kept <= offset < op.value:
            self.findings.violation([last, lookup.place, op.place])

    def _kept_from(self) -> int:
        """The minimum that the broker had announced for the queue by now."""
        return self.context.kept_from(self.lane.digest.rows.queue_of(self.lane.place), self.now)

    def _pulled(self, add: Op, nothing: Op | None, lookup: Op, op: Op) -> None:
        told = answered_offset(lookup)
        wanted = add.value if told is not None and told < 0 else told
        if told is not None and (wanted == NONE or op.offset == NONE):
            return
        self.stakes += 1
        if told is None:
            self.found(add, lookup, op, name="pulled-after-error")
        elif op.offset != wanted:
            later_end = self.start == "end" and told < 0 and op.offset > add.value
            if later_end and nothing is not None:
                self.found(nothing, add, lookup, op, name="start-moved")
            else:
                self.found(add, lookup, op, name="pulled-elsewhere")

    def ends(self, op: Op) -> None:
        if (
            op.kind is not Kind.FETCH_OFFSET
            or self.first is None
            or answered_offset(op) not in (-1, 0)
        ):
            return
        rows, first = self.lane.digest.rows, self.first
        if rows.end[first] > op.end or rows.ended[first] + self.bound_us > op.started:
            return
        young_us = YOUNG_US - self.context.info.clock_bound_us
        if (
            rows.started[first] >= op.started - young_us
            and self._lives(first)
            and not self._kept_from()
        ):
            self.stakes += 1
            if op.outcome is Outcome.REFUSED:
                self.findings.violation([first, op.place], name="not-young")


_KINDS = (Kind.FETCH_OFFSET, Kind.ADD, Kind.RESET)
TWIN = Twin(
    "CMT-8",
    (*OP_COLUMNS, "delay_level"),
    machine_kernel(Lane, _KINDS, lease=True, asides=(Kind.PULL,)),
)
find = TWIN.find


# ---- what breaks the clause, planted


def wrong_start(trace: Trace) -> Changes:
    """A stranger hears an offset and adds the lane elsewhere; it takes nothing, and commits nothing."""
    for commit in planting.acknowledged(trace):
        if not any(row.client_id == STRANGER for row in trace.lanes[commit.lane]):
            yield partial(lambda c: _started_elsewhere(trace, c, 1), commit)


def right_start(trace: Trace) -> Changes:
    for commit in planting.acknowledged(trace):
        yield partial(lambda c: _started_elsewhere(trace, c, 0), commit)


def _started_elsewhere(trace: Trace, commit: Row, beyond: int) -> Planted:
    told = commit.value or 0
    add = planting.looked_up(trace, commit, commit, 2, told + beyond)._replace(
        kind=Kind.ADD, incarnation=f"{STRANGER}#1"
    )
    return trace.with_more(
        [planting.looked_up(trace, commit, commit, 1, told), add], [commit.seq_begin]
    )


DEFECTS = (
    Mutant("wrong-start", "CMT-8", "a lane is not started where it was stored", wrong_start),
)

LOOKALIKES = (
    Mutant("right-start", None, "a stranger adds a lane where it was stored", right_start),
)
