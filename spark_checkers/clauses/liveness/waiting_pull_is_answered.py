"""What breaks LIV-4, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import MS, alter, begin, copy
from spark_checkers.planting import RECORDED, Changes, Trace, defect
from specs.vocabulary import Kind, Outcome


@defect(**RECORDED)
def woken_by_nobody(trace: Trace) -> Changes:
    """A message comes, and a pull waits on."""
    # A message is acknowledged where a pull waits, which is answered only long after.
    slack_us = (trace.config.schedule_slack_ms + 1) * MS
    usual = (row for row in trace.sent.values() if row.detail is None and not row.delay_level)
    sent = {row.queue: row for row in usual}
    for pull in trace.of(Kind.PULL):
        like = sent.get(pull.queue)
        if like is None or pull.queue_offset is None or pull.seq_end is not None:
            continue
        came = places.later(trace, pull, slack_us)
        answered = came and places.later(trace, came, slack_us)
        if answered is not None:
            new = {"message_id": f"{like.message_id}-planted", "queue_offset": pull.queue_offset}
            found = {
                "outcome": Outcome.OK,
                "code": 0,
                "detail": "1",
                "value": pull.queue_offset + 1,
            }
            end = {"seq_end": answered.seq_begin + 1, "ended_us": answered.started_us}
            message = copy(like, begin(came), **new, sharding_key=None, key_seq=None)
            yield alter(pull, **found, **end) + message
