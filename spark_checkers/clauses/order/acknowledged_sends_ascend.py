"""ORD-9 over columns: per queue, each send against the running maximum of those that ended before it began."""

from __future__ import annotations

import itertools

import numpy as np

from spark_checkers.rows import NEVER, NONE, Findings, Rows, RunContext
from spark_checkers.segments import Ints
from spark_checkers.twin import Twin
from specs.vocabulary import DLQ_PREFIX, RETRY_PREFIX, Kind, Outcome


def kernel(rows: Rows, findings: Findings) -> None:
    copies = rows.starts_with("topic", RETRY_PREFIX) | rows.starts_with("topic", DLQ_PREFIX)
    delay = rows.number("delay_level")
    sent = rows.are(Kind.SEND) & rows.ended_as(Outcome.OK) & (rows.offset != NONE) & (rows.end < NEVER)
    where = np.flatnonzero(sent & ~copies & ((delay == 0) | (delay == NONE)))
    where = where[np.lexsort((rows.end[where], rows.queue[where]))]
    starts = [*np.unique(rows.queue[where], return_index=True)[1].tolist(), len(where)]
    for start, stop in itertools.pairwise(starts):
        _queue(rows, findings, where[start:stop])


def _queue(rows: Rows, findings: Findings, by_end: Ints) -> None:
    """by_end: the sends of one queue."""
    broker = rows.text("broker")[by_end[0]]
    name = rows.words("broker")[broker] if broker >= 0 else ""
    context = rows.context_of(int(by_end[0]))
    offset, end = rows.offset[by_end], rows.end[by_end]
    if context.deaths_of(name):
        highest = _through_crashes(rows, by_end, name, context)
    else:
        raised = np.ones(len(by_end), np.bool_)
        raised[1:] = offset[1:] > np.maximum.accumulate(offset)[:-1]
        highest = np.maximum.accumulate(np.where(raised, np.arange(len(by_end)), 0))
    ended = np.searchsorted(end, rows.begin[by_end], side="left")  # how many, before each begins
    later = np.flatnonzero(ended)
    earlier = highest[ended[later] - 1]
    if context.deaths_of(name):
        begin = rows.begin[by_end]
        alive = [
            not context.broker_died_between(name, int(begin[one]), int(end[two]))
            for one, two in zip(earlier.tolist(), later.tolist(), strict=True)
        ]
        later, earlier = later[np.asarray(alive, np.bool_)], earlier[np.asarray(alive, np.bool_)]
    findings.at_stake(by_end[later])
    wrong = offset[later] <= offset[earlier]
    if wrong.any():
        one, two = by_end[earlier[wrong]], by_end[later[wrong]]
        findings.violated(one, two)


def _through_crashes(rows: Rows, by_end: Ints, broker: str, context: RunContext) -> Ints:
    """The highest after each end; one from before a crash counts for nothing as soon as another one ends."""
    offset, begin, end = rows.offset[by_end], rows.begin[by_end], rows.end[by_end]
    highest, found = 0, np.zeros(len(by_end), np.int64)
    for place in range(len(by_end)):
        lost = context.broker_died_between(broker, int(begin[highest]), int(end[place]))
        if lost or offset[place] > offset[highest]:
            highest = place
        found[place] = highest
    return found


TWIN = Twin("ORD-9", ("queue_offset", "outcome", "delay_level"), kernel)
find = TWIN.find
