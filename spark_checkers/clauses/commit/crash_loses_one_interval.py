"""What breaks CMT-7, planted in a history."""

from __future__ import annotations

from functools import partial
from typing import Any

from spark_checkers import planting
from spark_checkers.planting import MS, Changes, Mutant, Planted, Trace
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome

CLAUSE = "CMT-7"


def written_commit_lost(trace: Trace) -> Changes:
    config = trace.info.config
    interval = (max(config.stored_first_ms, config.stored_each_ms) + config.schedule_slack_ms) * MS
    for commit in planting.acknowledged(trace):
        late = planting.later(trace, commit, interval)
        if late is not None:
            yield partial(_crashed, trace, commit, late)


def _crashed(trace: Trace, commit: Row, after: Row) -> Planted:
    names = ("client_id", "incarnation", "group", "topic", "queue_id", "value", "view", "code")
    nothing: dict[str, Any] = dict.fromkeys(names)
    crash = trace.another(commit, after, 1, **nothing, outcome=Outcome.OK)._replace(
        kind=Kind.CRASH, process=commit.broker, detail=None
    )
    return trace.with_more(
        [crash, planting.looked_up(trace, commit, after, 2, 0)], [commit.seq_begin]
    )


DEFECTS = (
    Mutant(
        "written-commit-lost",
        "CMT-7",
        "an old commit is lost",
        written_commit_lost,
        generated=False,
    ),
)
