"""After a client has dropped a lane, no listener call of that incarnation starts.

A call that runs at the drop may go on to its end. A client that works on the lane again begins a new incarnation
(ADD). Both events are the client's own, so that no clock stands between them. Says nothing about leases: see
`call_under_fresh_grant`.
"""

from specs.clauses.terms import Finding, Findings, Row, Rows, at, ms, who
from specs.facts.columns import NOWHERE
from specs.facts.segments import Timeline, chosen, positions
from specs.facts.tenures import Tenures
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
COLUMNS = ("client_id", "incarnation")


class StartedAfterwards(Finding):
    drop: Row
    call: Row


def judge(rows: Rows, findings: Findings) -> None:
    """The calls of an incarnation whose lane was dropped, and not added since."""
    named, dropped = rows.shared(Tenures).named, rows.are(Kind.DROP)
    told = positions(named & (dropped | rows.are(Kind.ADD)))
    findings.at_stake(told[dropped[told]])
    calls = positions(named & rows.are(Kind.DELIVER))
    as_told = Timeline(rows.incarnation[told], rows.begin[told])
    last = chosen(told, as_told.last_before(rows.incarnation[calls], rows.begin[calls]), NOWHERE)
    late = (last != NOWHERE) & dropped[last]
    findings.broken(StartedAfterwards, drop=last[late], call=calls[late])


def explain(found: StartedAfterwards) -> str:
    drop, call = found.drop, found.call
    return (
        f"{who(call)} started offset {call.queue_offset} of {call.lane} at {at(call)}, "
        f"{ms(call.started_us - drop.started_us)} after it had dropped the lane at {at(drop)}"
    )
