"""What breaks LSE-4, planted in a history."""

from spark_checkers.changes import STRANGER, Change, Given, by, copy
from spark_checkers.planting import Pairs, Trace, defect
from specs.clauses.rows import ended_before
from specs.vocabulary import Kind, Outcome


def given_back(trace: Trace) -> Pairs:
    """(the last granted lock, its owner's unlock), while which nobody asks for the lane."""
    for rows in trace.lanes.values():
        last: Given | None = None
        for index, row in enumerate(rows):
            if row.kind is Kind.LOCK and row.outcome is not Outcome.REFUSED:
                last = row if row.outcome is Outcome.OK else None
            elif row.kind is Kind.UNLOCK and last is not None and last.client_id == row.client_id:
                locks = (each for each in rows[index + 1 :] if each.kind is Kind.LOCK)
                after = next(locks, None)
                alone = row.seq_end is not None and (after is None or ended_before(row, after))
                if alone and ended_before(last, row):
                    yield last, row


@defect(given_back)
def refused_free_lane(lock: Given, unlock: Given) -> Change:
    """A lane that was given back is refused."""
    # Only an answered unlock has certainly freed the lane for others; the owner itself is granted in any case.
    asker = STRANGER if unlock.outcome is Outcome.OK else lock.client_id
    answer = {"outcome": Outcome.REFUSED, "lease_until_us": None, "code": None}
    return copy(lock, unlock, **by(asker), **answer).about(lock, unlock)
