"""What breaks LSE-3, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers.planting import MS, Changes, Mutant, Trace

CLAUSE = "LSE-3"


def stale_lease(trace: Trace) -> Changes:
    config = trace.info.config
    limit = (config.client_lease_ms + config.guard_slack_ms + 2) * MS
    for calls in trace.calls:
        if not calls:
            continue
        locks = [
            lock for lock in trace.locks(calls[0].lane) if lock.client_id == calls[0].client_id
        ]
        mine = [lock for lock in locks if lock.seq_begin > calls[0].seq_begin]
        before = [lock for lock in locks if lock.seq_begin < calls[0].seq_begin]
        for index, call in enumerate(calls):
            if index and before and call.started_us - (before[-1].ended_us or 0) > limit:
                gone = [lock.seq_begin for lock in mine if (lock.seq_end or 0) < call.seq_begin]
                if gone:
                    about = (before[-1].seq_begin, call.seq_begin)
                    yield partial(trace.without, gone, about)
                break


DEFECTS = (
    Mutant("stale-lease", "LSE-3", "renewals are missing, and the client goes on", stale_lease),
)
