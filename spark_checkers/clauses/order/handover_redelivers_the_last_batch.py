"""What breaks ORD-14, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers.planting import Changes, Mutant, Trace
from specs.clauses.rows import is_manual
from specs.vocabulary import Kind, Outcome

CLAUSE = "ORD-14"


_OWNER = ("client_id", "process", "incarnation")
"""The columns that say whose delivery it is."""


def handover_without_report(trace: Trace) -> Changes:
    """The old owner reports nothing, and the new one begins with the first of what the old one had finished."""
    for rows in trace.works:
        drop = next((row for row in rows if row.kind is Kind.DROP), None)
        lane = trace.lanes[rows[0].lane]
        if drop is None:
            continue
        calls = [row for row in rows if row.kind is Kind.DELIVER and row.seq_begin < drop.seq_begin]
        done = [row for row in calls if row.outcome is Outcome.SUCCESS and not is_manual(row)]
        unlock = next(
            (r for r in lane if r.kind is Kind.UNLOCK and r.seq_begin > drop.seq_begin), None
        )
        add = next(
            (row for row in lane if row.kind is Kind.ADD and row.seq_begin > drop.seq_begin), None
        )
        if len(done) < 2 or unlock is None or unlock.client_id != drop.client_id or add is None:
            continue
        theirs = [
            row
            for row in lane
            if row.incarnation == add.incarnation and row.seq_begin > add.seq_begin
        ]
        first = next((row for row in theirs if row.kind is Kind.DELIVER), None)
        early = (done[0].queue_offset or 0) < (calls[-1].queue_offset or 0) and done[
            0
        ].seq_begin != calls[-1].seq_begin
        if first is None or not early or unlock.seq_begin > add.seq_begin:
            continue
        commits = [row.seq_begin for row in rows if row.kind is Kind.COMMIT]
        again = trace.another(done[0], first, 1, **{name: getattr(first, name) for name in _OWNER})
        again = again._replace(seq_begin=first.seq_begin - 2, seq_end=first.seq_begin - 1)
        yield partial(
            lambda g, a, d: Trace(trace.without(g, ()).rows, trace.info).with_more(
                [a], [d.seq_begin]
            ),
            commits,
            again,
            drop,
        )


DEFECTS = (
    Mutant(
        "handover-without-report",
        "ORD-14",
        "an old owner reports nothing at all",
        handover_without_report,
    ),
)
