"""What breaks LIV-3, planted in a history."""

from spark_checkers.changes import MS, drop
from spark_checkers.planting import RECORDED, Changes, Trace, defect
from specs.vocabulary import Kind, Outcome


@defect(**RECORDED)
def starved_lane(trace: Trace) -> Changes:
    """A lane gets no thread while another goes on."""
    config = trace.config
    cap_us = (config.continuous_ms + config.schedule_slack_ms) * MS
    for work in trace.works:
        full = (row for row in work.of(Kind.PULL) if (row.value or 0) > row.queue_offset)
        pull = next(full, None)
        if pull is None or pull.outcome is not Outcome.OK or pull.seq_end is None or not work.calls:
            continue
        until_us = pull.ended_us + cap_us + min(cap_us, config.client_lease_ms * MS)
        others = [
            row
            for row in trace.of(Kind.DELIVER)
            if row.client_id == pull.client_id and row.group == pull.group and row.lane != pull.lane
            if pull.seq_end < row.seq_begin < work.until and row.started_us < until_us
        ]
        same = [row for row in others if row.incarnation == others[0].incarnation]
        if same and same[-1].started_us > same[0].started_us + cap_us:
            yield drop(*work.calls).about(pull, same[0])
