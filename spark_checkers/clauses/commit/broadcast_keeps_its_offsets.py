"""What breaks CMT-12, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers.planting import BROADCASTING, Changes, Mutant, Trace
from specs.history.row import Row
from specs.vocabulary import Kind, Lane, Outcome

CLAUSE = "CMT-12"


def commit_in_broadcasting(trace: Trace) -> Changes:
    for row in trace.of(Kind.PERSIST):
        commit = {"kind": Kind.COMMIT, "outcome": Outcome.SENT}
        yield partial(
            lambda r, c: trace.with_more([trace.another(r, r, 1, **c)], [r.seq_begin]), row, commit
        )


def own_file_not_read(trace: Trace) -> Changes:
    written: dict[tuple[str | None, Lane], Row] = {}
    for row in trace.of(Kind.PERSIST, Kind.ADD):
        if row.kind is Kind.PERSIST:
            written[row.process, row.lane] = row
        elif (row.process, row.lane) in written and row.value:
            change = {row.seq_begin: {"value": 0}}
            about = (written[row.process, row.lane].seq_begin, row.seq_begin)
            yield partial(trace.changed, change, about)


DEFECTS = (
    Mutant(
        "commit-in-broadcasting",
        "CMT-12",
        "a broadcast client commits",
        commit_in_broadcasting,
        generated=False,
        consumed=BROADCASTING,
    ),
    Mutant(
        "own-file-not-read",
        "CMT-12",
        "a broadcast client begins anew",
        own_file_not_read,
        generated=False,
        consumed=BROADCASTING,
    ),
)
