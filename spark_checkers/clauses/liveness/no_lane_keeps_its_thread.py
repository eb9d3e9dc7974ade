"""What breaks LIV-3, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers.planting import MS, Changes, Mutant, Trace
from specs.vocabulary import Kind, Outcome

CLAUSE = "LIV-3"


def starved_lane(trace: Trace) -> Changes:
    cap = (trace.info.config.continuous_ms + trace.info.config.schedule_slack_ms) * MS
    lease = trace.info.config.client_lease_ms * MS
    for rows in trace.works:
        pull = next(
            (
                row
                for row in rows
                if row.kind is Kind.PULL and (row.value or 0) > (row.queue_offset or 0)
            ),
            None,
        )
        gone = [row.seq_begin for row in rows if row.kind is Kind.DELIVER]
        if pull is None or pull.outcome is not Outcome.OK or pull.seq_end is None or not gone:
            continue
        until = (pull.ended_us or 0) + cap + min(cap, lease)
        others = [
            row
            for row in trace.of(Kind.DELIVER)
            if row.client_id == pull.client_id and row.group == pull.group and row.lane != pull.lane
            if row.seq_begin > pull.seq_end and row.started_us < until
        ]
        same = [row for row in others if row.incarnation == others[0].incarnation]
        if same and same[-1].started_us > same[0].started_us + cap:
            yield partial(
                lambda g, p, o: trace.without(g, [p.seq_begin, o.seq_begin]), gone, pull, same[0]
            )


DEFECTS = (
    Mutant(
        "starved-lane",
        "LIV-3",
        "a lane gets no thread while another goes on",
        starved_lane,
        generated=False,
    ),
)
