"""What breaks RTY-2, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import MS, drop
from spark_checkers.planting import Changes, Trace, defect
from specs.plan.config import LOCK_WAIT_MS
from specs.vocabulary import LISTENER_SUSPENDS, Kind


@defect()
def suspended_for_ever(trace: Trace) -> Changes:
    """A suspended message never comes again."""
    # No call follows a suspended one until the lease is renewed, long after.
    config = trace.config
    brokers = len({row.broker for row in trace.of(Kind.ADD)})
    slack_us = (config.schedule_slack_ms + (brokers - 1) * LOCK_WAIT_MS) * MS
    for work in trace.works:
        steps = work.of(Kind.DELIVER, Kind.DEAD_LETTER)
        for row in steps:
            used_up = 0 <= config.max_reconsume_times <= (row.reconsume_times or 0)
            suspended = row.outcome in LISTENER_SUSPENDS and row.suspend_ms is not None
            if not suspended or used_up or row.ended_us is None:
                continue
            due_us = row.ended_us + row.suspend_ms * MS
            until_us = due_us + slack_us
            locks = trace.locks(row.lane, row.client_id)
            renewed = next((lock for lock in locks if lock.started_us > until_us), None)
            if renewed is None or renewed.seq_begin > work.until:
                continue
            if places.grant(trace, row, due_us - MS, until_us + MS) is not None:
                between = (step for step in steps if row.seq_begin < step.seq_begin)
                gone = [step for step in between if step.seq_begin < renewed.seq_begin]
                yield drop(*gone).about(row, renewed)
