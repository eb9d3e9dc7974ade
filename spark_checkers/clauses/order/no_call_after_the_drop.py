"""ORD-13 over columns: each call beside what its incarnation was told last before it, its ADD or its DROP."""

from __future__ import annotations

from functools import partial

from spark_checkers.planting import Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.facts.findings import Findings
from specs.facts.rows import Rows
from specs.facts.segments import NO_TEXT, NOWHERE, Timeline, chosen, positions
from specs.vocabulary import Kind, Outcome


def kernel(rows: Rows, findings: Findings) -> None:
    """The calls of an incarnation whose lane was dropped, and not added since."""
    named = (rows.text("incarnation") != NO_TEXT) & (rows.group != NO_TEXT)
    dropped = rows.are(Kind.DROP)
    told = positions(named & (dropped | rows.are(Kind.ADD)))
    findings.at_stake(told[dropped[told]])
    calls = positions(named & rows.are(Kind.DELIVER))
    as_told = Timeline(rows.incarnation[told], rows.begin[told])
    last = chosen(told, as_told.last_before(rows.incarnation[calls], rows.begin[calls]), NOWHERE)
    late = (last != NOWHERE) & dropped[last]
    findings.violated(last[late], calls[late])


TWIN = Twin("ORD-13", ("client_id", "incarnation"), kernel)
find = TWIN.find


# ---- what breaks the clause, planted


def call_after_drop(trace: Trace) -> Changes:
    for rows in trace.works:
        calls = [row for row in rows if row.kind is Kind.DELIVER and row.outcome is Outcome.SUCCESS]
        drops = [row for row in rows if row.kind is Kind.DROP]
        if calls and drops:
            yield partial(
                lambda c, d: trace.with_more([trace.another(c, d, 1)], [d.seq_begin]),
                calls[-1],
                drops[-1],
            )


DEFECTS = (
    Mutant(
        "call-after-drop", "ORD-13", "a call starts after the lane was dropped", call_after_drop
    ),
)
