"""In the key-ordered mode, calls of one sharding key never overlap, follow the queue, and hold back no other key.

Within an incarnation, for messages with a sharding key: (a) no call of a key begins while another one of it runs; (b)
none begins with an offset below those of the key's call before; (c) after a call that asks for its messages again
(SUSPEND, null, a throw, or a manual ROLLBACK) none begins beyond the lowest that is owed of them: each stays owed until
it came again, or was given up by a dead letter that began after the call had ended and was acknowledged (one that names
no incarnation speaks for its client). A message whose retries were used up, or whose counter is not told though there
is a limit, is owed only where such a dead letter of it had failed when the key's next call began: of a client that is
watched from outside none need be told. Messages without a key are free, and so are different keys, and different lanes.

(d) In an incarnation that was watched from its add, the first call of a key begins no later than the slack of the
schedule after a call that begins with a later message. The later one was pulled no earlier and was given a thread, so
that one was to be had; the key had nothing running and nothing suspended; so it waited for another key. Threads are
taken to be given to keys in turn. A key's further calls are not asked about: when it became free for them is not
recorded. Memory: one call for each key of a running incarnation, and what was delivered within the slack.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from specs.clauses.judging import Finding
from specs.clauses.premises import KEY_ORDERED, NO_RESET
from specs.clauses.rows import over_us
from specs.clauses.words import at, ms, who
from specs.facts.findings import Findings
from specs.facts.lanes import (
    OP_COLUMNS,
    LaneItems,
    Machine,
    Op,
    asks_again,
    each_lane,
    ended_before,
)
from specs.facts.segments import MS, NO_TEXT, NONE
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "ORD-11"
TITLE = "one call per key, in order"
STATEMENT = "In the key-ordered mode a key has one running call at a time, in order, and holds back no other key."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (KEY_ORDERED, NO_RESET)
SOURCES = ("docs/sources.md#key-order",)
LOOKS_BACK = True
KINDS = frozenset({Kind.DELIVER, Kind.DEAD_LETTER, Kind.ADD, Kind.DROP, Kind.RESET})
SETTINGS = ("max_reconsume_times",)
NEEDS = frozenset({Kind.DELIVER})
COLUMNS = (*OP_COLUMNS, "sharding_key")


@dataclass(frozen=True, slots=True)
class OutOfTurn(Finding):
    """before: of the key's call before the new one; running: whether it was not over."""

    before: Row
    new: Row
    running: bool


@dataclass(frozen=True, slots=True)
class HeldBack(Finding):
    """later: a call of a later message that began long before the first call of the key."""

    add: Row
    later: Row
    first: Row


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
                self.broken(HeldBack, add=work.add, later=later, first=op)
            return
        first, before = last.rows[0], last.rows[-1]
        if not ended_before(before, op):
            self.broken(OutOfTurn, {"running": True}, before=before, new=op)
        elif op.offset < first.offset:
            self.broken(OutOfTurn, {"running": False}, before=first, new=op)
        else:
            last.ends(self.config.max_reconsume_times)
            lowest = min(last.owed, default=op.offset)
            if op.offset > lowest:
                self.broken(OutOfTurn, {"running": False}, before=last.owed[lowest], new=op)
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


judge = each_lane(Lane, KINDS, lease=False)


def explain(found: OutOfTurn | HeldBack) -> str:
    if isinstance(found, HeldBack):
        first, later = found.first, found.later
        return (
            f"{who(first)} started offset {first.queue_offset} of {first.lane}, the first of key "
            f"{first.sharding_key}, at {at(first)}, {ms(first.started_us - later.started_us)} after it had started the "
            f"later offset {later.queue_offset}: another key held it back"
        )
    before, new = found.before, found.new
    what = f"{who(new)} started offset {new.queue_offset} (key {new.sharding_key}) of {new.lane} at {at(new)}"
    if found.running:
        return f"{what}, while its call of offset {before.queue_offset} of that key, begun at {at(before)}, still ran"
    if (new.queue_offset or 0) < (before.queue_offset or 0):
        return f"{what}, after offset {before.queue_offset} of that key, which it had started at {at(before)}"
    return (
        f"{what}, although offset {before.queue_offset} of that key had ended {before.outcome} at "
        f"{over_us(before) / 1_000_000:.3f} s and had to come again first"
    )
