"""What breaks RTY-11, planted in a history."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

from spark_checkers.planting import Changes, Mutant, Planted, Trace
from specs.clauses.rows import acknowledges, is_manual
from specs.history.row import Row
from specs.vocabulary import Outcome

CLAUSE = "RTY-11"


def counted_on(trace: Trace) -> Changes:
    """The old owner's last call suspends the message with which the new owner begins, as its first retry."""
    by_lane: dict[object, list[list[Row]]] = {}
    for calls in trace.calls:
        if calls:
            by_lane.setdefault(calls[0].lane, []).append(calls)
    for works in by_lane.values():
        for old, new in itertools.pairwise(sorted(works, key=lambda calls: calls[0].seq_begin)):
            last, first = old[-1], new[0]
            ended = (
                last.seq_end is not None and last.seq_end < first.seq_begin and acknowledges(last)
            )
            follows = last.queue_offset is not None and last.queue_offset + 1 == first.queue_offset
            if ended and follows and not is_manual(last) and first.reconsume_times == 0:
                yield partial(_counted_on, trace, last, first)


def _counted_on(trace: Trace, last: Row, first: Row) -> Planted:
    whose: dict[str, Any] = {
        name: getattr(last, name) for name in ("process", "client_id", "incarnation")
    }
    tried = trace.another(
        first, last, 1, outcome=Outcome.SUSPEND, suspend_ms=trace.info.config.suspend_ms, **whose
    )
    planted = trace.changed({first.seq_begin: {"reconsume_times": 1}})
    return Trace(planted.rows, trace.info).with_more([tried], [first.seq_begin])


DEFECTS = (
    Mutant("counted-on", "RTY-11", "a new owner counts from where the old one stopped", counted_on),
)
