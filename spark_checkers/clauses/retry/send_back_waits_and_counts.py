"""RTY-10 over columns: send-backs and copies in retry topics are few, so they are gone through one by one."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from spark_checkers.planting import CONCURRENT, Changes, Mutant, Trace
from spark_checkers.twin import Twin
from specs.clauses.rows import is_copy_topic
from specs.facts.findings import Findings
from specs.facts.rows import Rows
from specs.facts.segments import MS, NO_TEXT, NONE, dense
from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import RETRY_PREFIX, Kind

UNASKED = 3
"""The level of a message that is sent back without one, and for the first time."""
_UNITS_US = {"s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}


def table_us(config: Config) -> list[int]:
    """What each delay level means, level 1 first."""
    return [int(word[:-1]) * _UNITS_US[word[-1]] for word in config.delay_levels.split()]


def kernel(rows: Rows, findings: Findings) -> None:
    """Every copy against the earliest due time of the send-backs that carry one retry less."""
    back = rows.are(Kind.SEND_BACK) & (rows.number("delay_level") != NONE)
    copy = (
        rows.are(Kind.DELIVER)
        & rows.starts_with("topic", RETRY_PREFIX)
        & (rows.number("attempt") == 1)
    )
    sends = first_sends(rows)
    where = np.flatnonzero((back | copy) & (rows.number("reconsume_times") != NONE))
    where = where[rows.begin[where] < rows.clock_stepped(where)]
    if not len(where):
        return
    where = where[np.argsort(rows.begin[where], kind="stable")]
    number, _ = dense(rows.run[where], rows.source[where], rows.group[where])
    times, level = rows.number("reconsume_times"), rows.number("delay_level")
    due: dict[tuple[int, int], tuple[int, int]] = {}  # (message, counter): (µs, the send-back)
    last: dict[int, int] = {}
    first: dict[
        tuple[int, int], int
    ] = {}  # of a message: the seq of its first send-back, in any group
    tables: dict[int, list[int]] = {}
    for message, row in zip(number.tolist(), where.tolist(), strict=True):
        counter = int(times[row])
        if back[row]:
            table = tables.setdefault(int(rows.run[row]), table_us(rows.config_of(row)))
            asked = int(level[row]) or UNASKED + counter
            until = int(rows.started[row]) + (
                table[min(asked, len(table)) - 1] if table and asked > 0 else 0
            )
            last[message] = row
            first.setdefault((int(rows.run[row]), int(rows.source[row])), int(rows.begin[row]))
            known = due.get((message, counter))
            if known is None or until < known[0]:
                due[message, counter] = (until, row)
        elif message in last and _of_its_group(rows, row):
            of = (int(rows.run[row]), int(rows.source[row]))
            sent = sends.get(of)
            if sent is None or rows.begin[sent] >= first[of]:
                continue  # the history begins in the middle
            findings.at_stake(np.asarray([row]))
            known = due.get((message, counter - 1))
            if known is None:
                findings.violation([sent, last[message], row], name="miscounted")
            elif rows.started[row] < known[0] - MS - rows.context_of(row).info.clock_bound_us:
                findings.violation([sent, known[1], row])


def first_sends(rows: Rows) -> dict[tuple[int, int], int]:
    """By run and message: the row with which it was first sent."""
    sends = rows.of(Kind.SEND)
    sends = sends[np.argsort(-rows.begin[sends], kind="stable")]
    return dict(
        zip(
            zip(rows.run[sends].tolist(), rows.source[sends].tolist(), strict=True),
            sends.tolist(),
            strict=True,
        )
    )


def _of_its_group(rows: Rows, row: int) -> bool:
    """Is this the retry topic of the row's own group?"""
    group = int(rows.group[row])
    name = rows.words("group")[group] if group != NO_TEXT else ""
    return bool(rows.words("topic")[rows.text("topic")[row]] == RETRY_PREFIX + name)


TWIN = Twin(
    "RTY-10",
    ("message_id", "origin_id", "reconsume_times", "attempt", "delay_level", "started_us"),
    kernel,
)
find = TWIN.find


# ---- what breaks the clause, planted


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
