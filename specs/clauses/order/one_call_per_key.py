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
from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import KEY_ORDERED, NO_RESET
from specs.clauses.rows import asks_again, ended_before, may_be_given_up, over_us
from specs.clauses.words import MS, at, ms, who
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


class _Call:
    """The last call of a key. rows: its messages; owed: those of calls before that were put back and did not come
    again; given_up, failed: offsets whose dead letter was acknowledged since, or was not."""

    __slots__ = ("failed", "given_up", "op", "owed", "rows")

    def __init__(self, op: int) -> None:
        self.op = op
        self.rows: list[Row] = []
        self.owed: dict[int, Row] = {}
        self.given_up: set[int] = set()
        self.failed: set[int] = set()

    def has(self, offset: int) -> bool:
        """Is the message of this call, or owed of calls before?"""
        return offset in self.owed or any(row.queue_offset == offset for row in self.rows)


class _Incarnation:
    """add: None where it was not seen. calls: the last one of each key. highest: of the calls that began longer ago
    than the slack the one with the highest first offset; recent: the others, the last of which has this op."""

    __slots__ = ("add", "calls", "highest", "op", "recent")

    def __init__(self, add: Row | None) -> None:
        self.add = add
        self.calls: dict[str, _Call] = {}
        self.highest: Row | None = None
        self.op = -1
        self.recent: deque[Row] = deque()


class LaneJudge(Judge):
    """Remembers, for each incarnation, the last call of each key, and how far the lane was a slack ago."""

    __slots__ = ("incarnations",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.incarnations: dict[str, _Incarnation] = {}

    def begins(self, row: Row) -> Iterable[Finding]:
        name = row.incarnation
        if row.kind is Kind.RESET:
            self.incarnations.clear()
        elif name is None:
            pass
        elif row.kind is Kind.ADD:
            self.incarnations[name] = _Incarnation(row)
        elif row.kind is Kind.DELIVER and row.queue_offset is not None:
            mine = self.incarnations.get(name)
            if mine is None:
                mine = self.incarnations[name] = _Incarnation(None)
            self._time_passes(mine, row.started_us)
            found = (
                NOTHING
                if row.sharding_key is None
                else self._keyed(mine, row.sharding_key, row.queue_offset, row)
            )
            if row.op_id != mine.op:  # of a batch its first message tells whose turn it was
                mine.op = row.op_id
                mine.recent.append(row)
            return found
        return NOTHING

    def _time_passes(self, mine: _Incarnation, now_us: int) -> None:
        until_us = now_us - self.config.schedule_slack_ms * MS
        while mine.recent and mine.recent[0].started_us < until_us:
            row = mine.recent.popleft()
            if mine.highest is None or (row.queue_offset or 0) > (mine.highest.queue_offset or 0):
                mine.highest = row

    def _keyed(self, mine: _Incarnation, key: str, offset: int, row: Row) -> Iterable[Finding]:
        last = mine.calls.get(key)
        if last is not None and last.op == row.op_id:
            last.rows.append(row)
            last.owed.pop(offset, None)
            last.failed.discard(offset)
            return NOTHING
        call = mine.calls[key] = _Call(row.op_id)
        call.rows.append(row)
        self.opportunities += 1
        if last is not None:
            found = self._new_call(last, offset, row)
            if not found:
                call.owed = {place: each for place, each in last.owed.items() if place != offset}
                call.failed = last.failed - {offset}
            return found
        later = mine.highest
        if mine.add is None or later is None or (later.queue_offset or 0) <= offset:
            return NOTHING
        return (HeldBack(mine.add, later, row),)

    def _new_call(self, last: _Call, offset: int, row: Row) -> Iterable[Finding]:
        before = last.rows[-1]
        if not ended_before(before, row):
            return (OutOfTurn(before, row, running=True),)
        if offset < (last.rows[0].queue_offset or 0):
            return (OutOfTurn(last.rows[0], row, running=False),)
        if asks_again(before):
            last.owed.update(
                (each.queue_offset or 0, each) for each in last.rows if self._is_owed(last, each)
            )
        lowest = min(last.owed, default=offset)
        return NOTHING if offset <= lowest else (OutOfTurn(last.owed[lowest], row, running=False),)

    def _is_owed(self, last: _Call, row: Row) -> bool:
        offset = row.queue_offset
        return offset not in last.given_up and (
            offset in last.failed or not may_be_given_up(row, self.config)
        )

    def ends(self, row: Row) -> Iterable[Finding]:
        offset = row.queue_offset
        if row.kind is Kind.DROP and row.incarnation is not None:
            self.incarnations.pop(row.incarnation, None)
        elif row.kind is Kind.DEAD_LETTER and offset is not None:
            for call in self._about(row, offset):
                put_back = call.owed.get(offset)
                if not ended_before(put_back or call.rows[-1], row):
                    continue
                if row.outcome is not Outcome.OK:
                    call.failed.add(offset)
                    continue
                if put_back is None:
                    call.given_up.add(offset)
                call.owed.pop(offset, None)
        return NOTHING

    def _about(self, letter: Row, offset: int) -> list[_Call]:
        """The calls whose message it gives up.

        One that arrived speaks, where it names no incarnation, for its client, and without a key for whichever call
        had the message.
        """
        name, key = letter.incarnation, letter.sharding_key
        if (name is None or key is None) and letter.outcome is not Outcome.OK:
            return []
        works = self.incarnations.values() if name is None else (self.incarnations.get(name),)
        calls = [
            call
            for work in works
            if work is not None
            for call in (work.calls.values() if key is None else (work.calls.get(key),))
            if call is not None and call.has(offset)
        ]
        if name is None:
            return [call for call in calls if call.rows[-1].client_id == letter.client_id]
        return calls


judge = LaneJudge


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
