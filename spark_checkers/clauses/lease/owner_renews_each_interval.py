"""What breaks LSE-13, planted in a history."""

from spark_checkers.changes import MS, drop
from spark_checkers.planting import RECORDED, Changes, Trace, defect
from specs.vocabulary import Kind


@defect(**RECORDED)
def renewals_missing(trace: Trace) -> Changes:
    """A client at work does not renew."""
    config = trace.config
    for work in trace.works:
        mine = (row for row in trace.of(Kind.ADD) if row.client_id == work.add.client_id)
        asked_ms = len({row.broker for row in mine}) * config.delay_bound_ms
        bound_ms = config.lock_interval_ms + config.schedule_slack_ms + asked_ms
        busy = work.of(Kind.DELIVER, Kind.PULL, Kind.COMMIT)
        late = [row for row in busy if row.started_us - work.add.started_us > bound_ms * MS]
        if late:
            gone = [row for row in work.of(Kind.LOCK) if row.seq_begin < late[0].seq_begin]
            yield drop(*gone).about(work.add, late[0])
