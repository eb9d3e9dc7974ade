"""ORD-11 over columns: a machine per lane that goes through every call, for each asks about its key's call before."""

from __future__ import annotations

from collections import deque
from functools import partial

from spark_checkers.planting import KEY_ORDERED, Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.lanes import (
    OP_COLUMNS,
    LaneItems,
    Machine,
    Op,
    asks_again,
    ended_before,
    machine_kernel,
)
from specs.facts.segments import MS, NO_TEXT, NONE
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome


class Call:
    """The last call of a key, what calls before it put back that did not come again, and what its dead letters said."""

    __slots__ = ("failed", "given_up", "owed", "rows")

    def __init__(self, op: Op) -> None:
        self.rows = [op]
        self.owed: dict[int, Op] = {}
        self.given_up: set[int] = set()
        self.failed: set[int] = set()

    def ends(self, limit: int) -> None:
        """Another call of the key begins: what this one put back is owed, as far as it is known not to be given up."""
        if asks_again(self.rows[-1]):
            for each in self.rows:
                told = each.offset in self.failed or limit < 0 or NONE < each.reconsume < limit
                if told and each.offset not in self.given_up:
                    self.owed[each.offset] = each

    def letter(self, op: Op, *, arrived: bool) -> None:
        """A dead letter has ended, of this call or of what calls before it put back, or of neither."""
        owed = self.owed.get(op.offset)
        if owed is None and all(each.offset != op.offset for each in self.rows):
            return
        if not ended_before(owed or self.rows[-1], op):
            return
        if not arrived:
            self.failed.add(op.offset)
        elif owed is None:
            self.given_up.add(op.offset)
        else:
            del self.owed[op.offset]


class Work:
    """One incarnation: its add, the last call of each key, and what it had begun more than the slack ago."""

    __slots__ = ("add", "calls", "highest", "op", "recent")

    def __init__(self, add: Op | None) -> None:
        self.add = add
        self.calls: dict[int, Call] = {}
        self.highest: Op | None = None
        self.op = NONE
        self.recent: deque[Op] = deque()

    def highest_before(self, until_us: int) -> Op | None:
        """Of the deliveries that began before, the one with the highest offset."""
        while self.recent and self.recent[0].started < until_us:
            op = self.recent.popleft()
            if self.highest is None or op.offset > self.highest.offset:
                self.highest = op
        return self.highest


class Lane(Machine):
    """The incarnations of one lane."""

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.keys = lane.digest.rows.text("sharding_key")
        self.slack_us = self.config.schedule_slack_ms * MS
        self.works: dict[int, Work] = {}

    def begins(self, op: Op) -> None:
        if op.kind is Kind.RESET:
            self.works.clear()
        elif op.incarnation == NO_TEXT:
            return
        elif op.kind is Kind.ADD:
            self.works[op.incarnation] = Work(op)
        elif op.kind is Kind.DELIVER and op.offset >= 0:
            work = self.works.get(op.incarnation)
            if work is None:
                work = self.works[op.incarnation] = Work(None)
            later = work.highest_before(op.started - self.slack_us)
            if self.keys[op.place] != NO_TEXT:
                self._keyed(work, later, int(self.keys[op.place]), op)
            if op.op != work.op:
                work.op = op.op
                work.recent.append(op)

    def _keyed(self, work: Work, later: Op | None, key: int, op: Op) -> None:
        last = work.calls.get(key)
        if last is not None and last.rows[0].op == op.op:
            last.rows.append(op)
            last.owed.pop(op.offset, None)
            last.failed.discard(op.offset)
            return
        call = work.calls[key] = Call(op)
        self.stakes += 1
        if last is None:
            if work.add is not None and later is not None and later.offset > op.offset:
                self.found(work.add, later, op, name="held-back")
            return
        first, before = last.rows[0], last.rows[-1]
        if not ended_before(before, op):
            self.found(before, op)
        elif op.offset < first.offset:
            self.found(first, op)
        else:
            last.ends(self.config.max_reconsume_times)
            lowest = min(last.owed, default=op.offset)
            if op.offset > lowest:
                self.found(last.owed[lowest], op)
            else:
                call.owed = {
                    offset: each for offset, each in last.owed.items() if offset != op.offset
                }
                call.failed = last.failed
                call.failed.discard(op.offset)

    def ends(self, op: Op) -> None:
        if op.kind is Kind.DROP and op.incarnation != NO_TEXT:
            self.works.pop(op.incarnation, None)
        elif op.kind is Kind.DEAD_LETTER and op.offset >= 0:
            self._dead_letter(op, int(self.keys[op.place]))

    def _dead_letter(self, op: Op, key: int) -> None:
        """What arrived may name neither the incarnation nor the key; what failed has to."""
        arrived, named = op.outcome is Outcome.OK, op.incarnation != NO_TEXT
        if not arrived and (not named or key == NO_TEXT):
            return
        works = [self.works.get(op.incarnation)] if named else [*self.works.values()]
        for work in works:
            if work is None:
                continue
            for call in [work.calls.get(key)] if key != NO_TEXT else [*work.calls.values()]:
                if call is not None and (named or call.rows[-1].client == op.client):
                    call.letter(op, arrived=arrived)


_KINDS = (Kind.DELIVER, Kind.DEAD_LETTER, Kind.ADD, Kind.DROP, Kind.RESET)
TWIN = Twin("ORD-11", (*OP_COLUMNS, "sharding_key"), machine_kernel(Lane, _KINDS, lease=False))
find = TWIN.find


# ---- what breaks the clause, planted


def key_overlaps(trace: Trace) -> Changes:
    for calls in trace.calls:
        last: dict[str | None, Row] = {}
        for row in calls:
            before = last.get(row.sharding_key)
            last[row.sharding_key] = row
            if (
                row.sharding_key is not None
                and before is not None
                and before.outcome is Outcome.SUCCESS
            ):
                change = {
                    before.seq_begin: {"seq_end": row.seq_begin + 1, "ended_us": row.started_us}
                }
                about = (before.seq_begin, row.seq_begin)
                yield partial(trace.changed, change, about)


DEFECTS = (
    Mutant(
        "key-overlaps",
        "ORD-11",
        "a call of a key begins while another one of it runs",
        key_overlaps,
        generated=False,
        consumed=KEY_ORDERED,
    ),
)
