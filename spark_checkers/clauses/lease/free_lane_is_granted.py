"""What breaks LSE-4, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers.planting import STRANGER, Changes, Mutant, Planted, Trace
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome

CLAUSE = "LSE-4"


def refused_free_lane(trace: Trace) -> Changes:
    for rows in trace.lanes.values():
        last: Row | None = None
        for index, row in enumerate(rows):
            if row.kind is Kind.LOCK and row.outcome is not Outcome.REFUSED:
                last = row if row.outcome is Outcome.OK else None
            if (
                row.kind is not Kind.UNLOCK
                or last is None
                or last.client_id != row.client_id
                or row.seq_end is None
            ):
                continue
            after = next((each for each in rows[index + 1 :] if each.kind is Kind.LOCK), None)
            alone = after is None or after.seq_begin > row.seq_end
            if alone and (last.seq_end or 0) < row.seq_begin:
                yield partial(_refused, trace, last, row)


def _refused(trace: Trace, lock: Row, unlock: Row) -> Planted:
    # Only an answered unlock has certainly freed the lane for others; the owner itself is granted in any case.
    asker = STRANGER if unlock.outcome is Outcome.OK else lock.client_id
    refused = trace.another(
        lock,
        unlock,
        1,
        client_id=asker,
        process=asker,
        outcome=Outcome.REFUSED,
        lease_until_us=None,
        code=None,
    )
    return trace.with_more([refused], [lock.seq_begin, unlock.seq_begin])


DEFECTS = (
    Mutant(
        "refused-free-lane", "LSE-4", "a lane that was given back is refused", refused_free_lane
    ),
)
