"""What breaks RTY-5, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers.planting import Changes, Mutant, Trace
from specs.vocabulary import Kind, Outcome

CLAUSE = "RTY-5"


def given_up_too_soon(trace: Trace) -> Changes:
    limit = trace.info.config.max_reconsume_times
    if trace.info.config.batch != 1 or limit < 1:
        return
    for rows in trace.works:
        calls = [row for row in rows if row.kind in (Kind.DELIVER, Kind.DEAD_LETTER)]
        if any(row.outcome is Outcome.ROLLBACK for row in calls):
            continue
        for index in range(2, len(calls)):
            first, last, letter = calls[index - 2 : index + 1]
            same = first.queue_offset == last.queue_offset == letter.queue_offset
            kinds = (first.kind, last.kind, letter.kind) == (
                Kind.DELIVER,
                Kind.DELIVER,
                Kind.DEAD_LETTER,
            )
            counted = first.reconsume_times == limit - 1 and last.reconsume_times == limit
            if same and kinds and counted and letter.outcome is Outcome.OK:
                about = (first.seq_begin, letter.seq_begin)
                yield partial(lambda g, a: trace.without([g], a), last.seq_begin, about)


DEFECTS = (
    Mutant(
        "given-up-too-soon",
        "RTY-5",
        "a message is given up one delivery too soon",
        given_up_too_soon,
    ),
)
