"""After a client has dropped a lane, no listener call of that incarnation starts.

A call that runs at the drop may go on to its end. A client that works on the lane again begins a new incarnation
(ADD). Both events are the client's own, so that no clock stands between them. Says nothing about leases: see
`call_under_fresh_grant`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.words import at, ms, who
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Party

ID = "ORD-13"
TITLE = "no call after the drop"
STATEMENT = "After a drop, no call of that incarnation starts."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = ()
SOURCES = ("docs/sources.md#orderly-loop",)
KINDS = frozenset({Kind.DELIVER, Kind.ADD, Kind.DROP})
NEEDS = frozenset({Kind.DELIVER, Kind.DROP})


@dataclass(frozen=True, slots=True)
class StartedAfterwards(Finding):
    drop: Row
    call: Row


class LaneJudge(Judge):
    """Remembers the drop of each incarnation that is over."""

    __slots__ = ("dropped",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.dropped: dict[str, Row] = {}

    def begins(self, row: Row) -> Iterable[Finding]:
        name = row.incarnation
        if name is None:
            return NOTHING
        if row.kind is Kind.DROP:
            self.opportunities += 1
            self.dropped[name] = row
        elif row.kind is Kind.ADD:
            self.dropped.pop(name, None)
        elif name in self.dropped:
            return (StartedAfterwards(self.dropped[name], row),)
        return NOTHING


judge = LaneJudge


def explain(found: StartedAfterwards) -> str:
    drop, call = found.drop, found.call
    return (
        f"{who(call)} started offset {call.queue_offset} of {call.lane} at {at(call)}, "
        f"{ms(call.started_us - drop.started_us)} after it had dropped the lane at {at(drop)}"
    )
