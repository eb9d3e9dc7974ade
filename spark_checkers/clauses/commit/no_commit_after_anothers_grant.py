"""What breaks CMT-5, planted in a history."""

from __future__ import annotations

import itertools
from functools import partial

from spark_checkers.planting import MS, Changes, Mutant, Trace
from specs.vocabulary import Kind

CLAUSE = "CMT-5"


def late_commit(trace: Trace) -> Changes:
    lease = trace.info.config.broker_lease_ms * MS
    for lane, rows in trace.lanes.items():
        locks = trace.locks(lane)
        unlocks = [row for row in rows if row.kind is Kind.UNLOCK]
        commits = [row for row in rows if row.kind is Kind.COMMIT and row.incarnation is not None]
        for lock, other in itertools.pairwise(locks):
            between = [
                u
                for u in unlocks
                if u.client_id == lock.client_id and u.seq_begin > (lock.seq_end or 0)
            ]
            given_back = [u for u in between if u.seq_begin < (other.seq_end or 0)]
            mine = [
                c
                for c in commits
                if c.client_id == lock.client_id and c.seq_begin < other.seq_begin
            ]
            in_time = (other.ended_us or 0) <= lock.started_us + lease
            if lock.client_id != other.client_id and given_back and mine and in_time:
                yield partial(
                    lambda c, o: trace.with_more([trace.another(c, o, 1)], [o.seq_begin]),
                    mine[-1],
                    other,
                )


DEFECTS = (
    Mutant("late-commit", "CMT-5", "the old owner commits after the new one's grant", late_commit),
)
