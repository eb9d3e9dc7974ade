"""Whoever gives a lane back has reported all that it finished there before, so that a successor finds it.

When an incarnation unlocks its lane in good order (after a drop, or in a shutdown), the highest offset that its
calls had finished before the drop has been committed: the request is on its way before the unlock is. Whether it
arrives is the network's affair.

Judged where the ADD was seen: whoever records adds records commits. A call that ended after the DROP finished
nothing. A broker's correction (`detail=corrected`), which replaces what was finished, and a reset are excused.
RocketMQ's shutdown frees its leases first, in every version; profiles allow that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.base import NO_RESET, NOTHING, ORDERLY, Context, Finding, Judge, acknowledges, at, who
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Party

ID = "CMT-13"
TITLE = "the last commit goes before the unlock"
STATEMENT = "In a clean release the last commit is sent before the unlock."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (ORDERLY, NO_RESET)
SOURCES = ("docs/sources.md#client-leases", "docs/sources.md#offsets")
KINDS = frozenset({Kind.ADD, Kind.DROP, Kind.DELIVER, Kind.COMMIT, Kind.UNLOCK, Kind.RESET})
NEEDS = frozenset({Kind.COMMIT, Kind.DELIVER, Kind.UNLOCK})

CORRECTED = "corrected"


@dataclass(frozen=True, slots=True)
class ReleasedFirst(Finding):
    """finished: the highest message that the incarnation had finished, and not reported."""

    add: Row
    finished: Row
    unlock: Row


class _Incarnation:
    """One incarnation: the highest message that it finished before its drop, and the highest value committed."""

    __slots__ = ("add", "committed", "dropped", "finished")

    def __init__(self, add: Row) -> None:
        self.add = add
        self.finished: Row | None = None
        self.committed = -1
        self.dropped = False


class LaneJudge(Judge):
    """Remembers, for each incarnation from its ADD to its unlock, one finished message and one value."""

    __slots__ = ("incarnations",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.incarnations: dict[str, _Incarnation] = {}

    def begins(self, row: Row) -> Iterable[Finding]:
        name, kind = row.incarnation, row.kind
        if kind is Kind.RESET:
            self.incarnations.clear()
            return NOTHING
        if name is None:
            return NOTHING
        if kind is Kind.ADD:
            self.incarnations[name] = _Incarnation(row)
            return NOTHING
        mine = self.incarnations.get(name)
        if mine is None:
            return NOTHING
        if kind is Kind.DROP:
            mine.dropped = True
        elif kind is Kind.COMMIT:
            if row.detail == CORRECTED:
                del self.incarnations[name]
            elif row.value is not None:
                mine.committed = max(mine.committed, row.value)
        elif kind is Kind.UNLOCK:
            del self.incarnations[name]
            return self._released(mine, row)
        return NOTHING

    def _released(self, mine: _Incarnation, row: Row) -> Iterable[Finding]:
        finished = mine.finished
        if finished is None:
            return NOTHING
        self.opportunities += 1
        if mine.committed > (finished.queue_offset or 0):
            return NOTHING
        return (ReleasedFirst(mine.add, finished, row),)

    def ends(self, row: Row) -> Iterable[Finding]:
        offset = row.queue_offset
        if row.kind is not Kind.DELIVER or offset is None or not acknowledges(row):
            return NOTHING
        mine = self.incarnations.get(row.incarnation or "")
        if mine is None or mine.dropped:
            return NOTHING
        if mine.finished is None or offset > (mine.finished.queue_offset or 0):
            mine.finished = row
        return NOTHING


judge = LaneJudge


def explain(found: ReleasedFirst) -> str:
    finished, unlock = found.finished, found.unlock
    return (
        f"{who(unlock)} gave {unlock.lane} back at {at(unlock)} without having committed "
        f"{(finished.queue_offset or 0) + 1}: offset {finished.queue_offset}, begun at {at(finished)}, was finished"
    )
