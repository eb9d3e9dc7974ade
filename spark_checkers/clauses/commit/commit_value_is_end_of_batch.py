"""What breaks CMT-2, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers.planting import MS, Changes, Mutant, Trace
from specs.clauses import rows as of_rows
from specs.vocabulary import Kind

CLAUSE = "CMT-2"


def lost_commits(trace: Trace) -> Changes:
    config = trace.info.config
    bound = (config.persist_first_ms + config.persist_ms + config.schedule_slack_ms + 1) * MS
    for rows in trace.works:
        add = next(row for row in rows if row.kind is Kind.ADD)
        done = next(
            (
                row
                for row in rows
                if row.kind is Kind.DELIVER and of_rows.acknowledges(row) and row.seq_end
            ),
            None,
        )
        work = [row for row in rows if row.kind in (Kind.DELIVER, Kind.PULL)]
        commits = [row.seq_begin for row in rows if row.kind is Kind.COMMIT]
        late = [
            row
            for row in work
            if done is not None and row.started_us > (done.ended_us or 0) + bound
        ]
        if done is not None and late and commits:
            about = (add.seq_begin, done.seq_begin, late[0].seq_begin)
            yield partial(trace.without, commits, about)


DEFECTS = (Mutant("lost-commits", "CMT-2", "an incarnation commits nothing", lost_commits),)
