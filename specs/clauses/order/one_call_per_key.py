"""In the key-ordered mode, calls of one sharding key never overlap, and follow the order of the queue.

Within an incarnation, for messages with a sharding key: (a) no call of a key begins while another one of it runs;
(b) none begins with an offset below those of the key's call before; (c) after a call that asks for its messages
again (SUSPEND, null or a throw) none begins beyond them, unless each was given up by an acknowledged dead letter
since. Messages without a key are free, and so are different keys, and different lanes.

The catalogue's sentence goes on: and a key holds back no other. That one key waited for another can't be told from
rows that are present: it would take the rows that are missing, and how many threads were busy meanwhile. So it is
left to what is said about progress.
Memory: one call for each key of a running incarnation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.base import (
    KEY_ORDERED,
    NO_RESET,
    NOTHING,
    Context,
    Finding,
    Judge,
    asks_again,
    at,
    ended_before,
    who,
)
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "ORD-11"
TITLE = "one call per key, in order"
STATEMENT = "In the key-ordered mode a sharding key has one running call at a time, in the order of its messages."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (KEY_ORDERED, NO_RESET)
SOURCES = ("docs/sources.md#key-order",)
KINDS = frozenset({Kind.DELIVER, Kind.DEAD_LETTER, Kind.ADD, Kind.DROP, Kind.RESET})


@dataclass(frozen=True, slots=True)
class OutOfTurn(Finding):
    """before: of the key's call before the new one; running: whether it was not over."""

    before: Row
    new: Row
    running: bool


class _Call:
    """The last call of a key. rows: its messages; given_up: offsets whose dead letter was acknowledged since."""

    __slots__ = ("given_up", "op", "rows")

    def __init__(self, op: int) -> None:
        self.op = op
        self.rows: list[Row] = []
        self.given_up: set[int] = set()


class LaneJudge(Judge):
    """Remembers, for each incarnation, the last call of each key."""

    __slots__ = ("calls",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.calls: dict[str, dict[str, _Call]] = {}

    def begins(self, row: Row) -> Iterable[Finding]:
        name = row.incarnation
        if row.kind is Kind.RESET:
            self.calls.clear()
        elif name is None:
            pass
        elif row.kind is Kind.ADD:
            self.calls.pop(name, None)
        elif row.kind is Kind.DELIVER and row.sharding_key is not None and row.queue_offset is not None:
            return self._delivered(self.calls.setdefault(name, {}), row.sharding_key, row.queue_offset, row)
        return NOTHING

    def _delivered(self, calls: dict[str, _Call], key: str, offset: int, row: Row) -> Iterable[Finding]:
        last = calls.get(key)
        if last is not None and last.op == row.op_id:
            last.rows.append(row)
            return NOTHING
        call = calls[key] = _Call(row.op_id)
        call.rows.append(row)
        if last is None:
            return NOTHING
        self.opportunities += 1
        return self._new_call(last, offset, row)

    def _new_call(self, last: _Call, offset: int, row: Row) -> Iterable[Finding]:
        before = last.rows[-1]
        if not ended_before(before, row):
            return (OutOfTurn(before, row, running=True),)
        if offset < (last.rows[0].queue_offset or 0):
            return (OutOfTurn(last.rows[0], row, running=False),)
        if offset > (before.queue_offset or 0) and asks_again(before):
            owed = [each for each in last.rows if each.queue_offset not in last.given_up]
            if owed:
                return (OutOfTurn(owed[0], row, running=False),)
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        name, key, offset = row.incarnation, row.sharding_key, row.queue_offset
        if name is None:
            return NOTHING
        if row.kind is Kind.DROP:
            self.calls.pop(name, None)
        elif row.kind is Kind.DEAD_LETTER and row.outcome is Outcome.OK and key is not None and offset is not None:
            call = self.calls.get(name, {}).get(key)
            if call is not None and ended_before(call.rows[-1], row):
                call.given_up.add(offset)
        return NOTHING


judge = LaneJudge


def explain(found: OutOfTurn) -> str:
    before, new = found.before, found.new
    what = f"{who(new)} started offset {new.queue_offset} (key {new.sharding_key}) of {new.lane} at {at(new)}"
    if found.running:
        return f"{what}, while its call of offset {before.queue_offset} of that key, begun at {at(before)}, still ran"
    if (new.queue_offset or 0) < (before.queue_offset or 0):
        return f"{what}, after offset {before.queue_offset} of that key, which it had started at {at(before)}"
    return (
        f"{what}, although offset {before.queue_offset} of that key had ended {before.outcome} at "
        f"{(before.ended_us or 0) / 1_000_000:.3f} s and had to come again first"
    )


SHORTEST_VIOLATION = """
    config mode=key_ordered
    0ms..9ms    alice  delivers  billing/orders/b0/3   offset=17 id=m17 key=k1 success
    5ms..7ms    alice  delivers  billing/orders/b0/3   offset=19 id=m19 key=k1 success
"""
ALLOWED_THOUGH_IT_LOOKS_WRONG = """
    config mode=key_ordered max_reconsume_times=1
    0ms..3ms    alice  delivers      billing/orders/b0/3   offset=17 id=m17 key=k1 rt=0 suspend
    1ms..9ms    alice  delivers      billing/orders/b0/3   offset=18 id=m18 key=k2 rt=0 success   # another key
    2ms..4ms    alice  delivers      billing/orders/b0/3   offset=20 id=m20 rt=0 suspend          # no key
    3ms..4ms    alice  delivers      billing/orders/b0/3   offset=21 id=m21 rt=0 success
    5ms..6ms    alice  delivers      billing/orders/b0/3   offset=17 id=m17 key=k1 rt=1 suspend
    6ms..7ms    alice  dead-letters  billing/orders/b0/3   offset=17 id=m17 key=k1 rt=1 ok
    8ms..9ms    alice  delivers      billing/orders/b0/3   offset=19 id=m19 key=k1 rt=0 success
"""
