"""What breaks CMT-7, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import MS, insert, looked_up
from spark_checkers.planting import RECORDED, Changes, Trace, defect
from specs.vocabulary import Kind

NOBODY = dict.fromkeys(("client_id", "incarnation", "group", "topic", "queue_id"))


@defect(**RECORDED)
def written_commit_lost(trace: Trace) -> Changes:
    """An old commit is lost."""
    config = trace.config
    interval = (max(config.stored_first_ms, config.stored_each_ms) + config.schedule_slack_ms) * MS
    for commit in places.acknowledged(trace):
        late = places.later(trace, commit, interval)
        if late is not None:
            died = insert(Kind.CRASH, commit, late, **NOBODY, process=commit.broker)
            yield (died + looked_up(commit, late, 0)).about(commit)
