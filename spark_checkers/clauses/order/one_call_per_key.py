"""ORD-11 over columns: a machine per lane that goes through every call, for each asks about its key's call before."""

from __future__ import annotations

from spark_checkers.lanes import OP_COLUMNS, LaneItems, Machine, Op, asks_again, ended_before, machine_kernel
from spark_checkers.rows import NO_TEXT, Findings
from spark_checkers.twin import Twin
from specs.vocabulary import Kind, Outcome


class Call:
    """The last call of a key: its rows, and its offsets that were given up since."""

    __slots__ = ("given_up", "rows")

    def __init__(self, op: Op) -> None:
        self.rows = [op]
        self.given_up: set[int] = set()

    def owed(self) -> list[Op]:
        return [each for each in self.rows if each.offset not in self.given_up]


class Lane(Machine):
    """For each incarnation and key, its last call."""

    __slots__ = ("calls", "keys")

    def __init__(self, lane: LaneItems, findings: Findings) -> None:
        super().__init__(lane, findings)
        self.keys = lane.digest.rows.text("sharding_key")
        self.calls: dict[int, dict[int, Call]] = {}

    def begins(self, op: Op) -> None:
        if op.kind is Kind.RESET:
            self.calls.clear()
        elif op.incarnation == NO_TEXT:
            return
        elif op.kind is Kind.ADD:
            self.calls.pop(op.incarnation, None)
        elif op.kind is Kind.DELIVER and op.offset >= 0 and self.keys[op.place] != NO_TEXT:
            self._deliver(self.calls.setdefault(op.incarnation, {}), int(self.keys[op.place]), op)

    def _deliver(self, calls: dict[int, Call], key: int, op: Op) -> None:
        last = calls.get(key)
        if last is not None and last.rows[0].op == op.op:
            last.rows.append(op)
            return
        calls[key] = Call(op)
        if last is None:
            return
        self.stakes += 1
        first, before = last.rows[0], last.rows[-1]
        if not ended_before(before, op):
            self.found(before, op)
        elif op.offset < first.offset:
            self.found(first, op)
        elif op.offset > before.offset and asks_again(before) and last.owed():
            self.found(last.owed()[0], op)

    def ends(self, op: Op) -> None:
        if op.incarnation == NO_TEXT:
            return
        if op.kind is Kind.DROP:
            self.calls.pop(op.incarnation, None)
        elif op.kind is Kind.DEAD_LETTER and op.outcome is Outcome.OK and op.offset >= 0:
            call = self.calls.get(op.incarnation, {}).get(int(self.keys[op.place]))
            if call is not None and self.keys[op.place] != NO_TEXT and ended_before(call.rows[-1], op):
                call.given_up.add(op.offset)


_KINDS = (Kind.DELIVER, Kind.DEAD_LETTER, Kind.ADD, Kind.DROP, Kind.RESET)
TWIN = Twin("ORD-11", (*OP_COLUMNS, "sharding_key"), machine_kernel(Lane, _KINDS, lease=False))
find = TWIN.find
