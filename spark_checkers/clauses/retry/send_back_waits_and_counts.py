"""What breaks RTY-10, planted in a history."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from spark_checkers.planting import CONCURRENT, Changes, Mutant, Trace
from specs.clauses.rows import is_copy_topic
from specs.history.row import Row
from specs.vocabulary import Kind

CLAUSE = "RTY-10"


def copy_too_soon(trace: Trace) -> Changes:
    for back, copy in _copies(trace):
        if copy.reconsume_times == (back.reconsume_times or 0) + 1:
            change = {back.seq_begin: {"delay_level": 99}}
            about = (back.seq_begin, copy.seq_begin)
            yield partial(trace.changed, change, about)


def copy_miscounted(trace: Trace) -> Changes:
    for back, copy in _copies(trace):
        change = {copy.seq_begin: {"reconsume_times": (copy.reconsume_times or 0) + 99}}
        about = (back.seq_begin, copy.seq_begin)
        yield partial(trace.changed, change, about)


def copy_later_than_asked(trace: Trace) -> Changes:
    for back, copy in _copies(trace):
        if (back.delay_level or 0) > 0:
            change = {back.seq_begin: {"delay_level": 1}}
            about = (back.seq_begin, copy.seq_begin)
            yield partial(trace.changed, change, about)


def _copies(trace: Trace) -> Iterator[tuple[Row, Row]]:
    """(a send-back, the first delivery of what came of it), for messages that were sent back once in all."""
    backs: dict[tuple[str | None, str | None], list[Row]] = {}
    for row in trace.of(Kind.SEND_BACK):
        backs.setdefault((row.group, row.source_id), []).append(row)
    for row in trace.of(Kind.DELIVER):
        mine = backs.get((row.group, row.source_id), [])
        if is_copy_topic(row.topic) and row.attempt == 1 and len(mine) == 1:
            yield mine[0], row


DEFECTS = (
    Mutant(
        "copy-too-soon",
        "RTY-10",
        "a message that was sent back comes before its level",
        copy_too_soon,
        generated=False,
        consumed=CONCURRENT,
    ),
    Mutant(
        "copy-miscounted",
        "RTY-10",
        "a message that was sent back comes with another counter",
        copy_miscounted,
        generated=False,
        consumed=CONCURRENT,
    ),
)

LOOKALIKES = (
    Mutant(
        "copy-later-than-asked",
        None,
        "a lower level was asked for",
        copy_later_than_asked,
        generated=False,
        consumed=CONCURRENT,
    ),
)
