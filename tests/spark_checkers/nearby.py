"""Histories near those of the transcripts: each is about something, and a small change leads to its other side.

Not a test file; the tests of this folder import it by path (`conftest.py` puts it on the path).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from inorder.evidence.laws import cut_open, put_in_order
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.vocabulary import Kind, Level, Outcome

MS = 1000
_ANSWERS = (Outcome.OK, Outcome.REFUSED, Outcome.UNKNOWN, Outcome.SENT)
_RESULTS = (
    Outcome.SUCCESS,
    Outcome.COMMIT,
    Outcome.SUSPEND,
    Outcome.ROLLBACK,
    Outcome.THREW,
    Outcome.CUT,
)
_NUMBERS = ("queue_offset", "value", "reconsume_times", "attempt", "key_seq", "suspend_ms", "code")
_LOST = (
    *_NUMBERS,
    "message_id",
    "origin_id",
    "incarnation",
    "sharding_key",
    "commit_mode",
    "view",
    "detail",
    "delay_level",
    "broker_epoch",
    "lease_id",
    "body_hash",
    "tags",
)
_NAMES = ("client_id", "message_id", "queue_id", "group", "incarnation", "queue_offset", "value")
Rows = list[Row]


def nearby(info: RunInfo, rows: Sequence[Row], draw: Random) -> tuple[RunInfo, Rows]:
    """The history with one to three small changes."""
    changed = list(rows)
    for _ in range(draw.choice((1, 1, 2, 3))):
        if changed:
            before = list(changed)
            draw.choice(_CHANGES)(changed, draw)
            if not _is_possible(changed):
                changed = before
    if draw.random() < 0.1:
        info = replace(info, closed_world=not info.closed_world)
    elif draw.random() < 0.2:
        info, changed = draw.choice(_OTHERWISE)(info, changed, draw)
    return info, put_in_order(changed)


def _is_possible(rows: Rows) -> bool:
    """No operation has two messages at one place, and none is sent twice as the same attempt: a run with that can't be
    trusted, and nothing is promised of what is said of it.
    """
    places = [
        (row.op_id, row.queue_id, row.queue_offset) for row in rows if row.queue_offset is not None
    ]
    sends = [
        (row.message_id, row.attempt or 1)
        for row in rows
        if row.kind is Kind.SEND and row.message_id is not None
    ]
    return len(set(places)) == len(places) and len(set(sends)) == len(sends)


def _answered_otherwise(rows: Rows, draw: Random) -> None:
    at = draw.randrange(len(rows))
    row = rows[at]
    if row.seq_end is not None:
        known = _RESULTS if row.kind is Kind.DELIVER else _ANSWERS
        rows[at] = row._replace(outcome=draw.choice(known))


def _without_end(rows: Rows, draw: Random) -> None:
    at = draw.randrange(len(rows))
    rows[at] = cut_open(rows[at])


def _without_a_row(rows: Rows, draw: Random) -> None:
    del rows[draw.randrange(len(rows))]


def _once_more(rows: Rows, draw: Random) -> None:
    """The same again later, as another operation."""
    row = draw.choice(rows)
    last = max(each.seq_end or each.seq_begin for each in rows)
    later_us = draw.choice(rows).started_us - row.started_us + draw.choice((0, 1, MS))
    rows.append(
        _moved(row, max(later_us, 0))._replace(
            op_id=max(each.op_id for each in rows) + 1,
            seq_begin=last + 1,
            seq_end=None if row.seq_end is None else last + 1 + (row.seq_end != row.seq_begin),
        )
    )


def _by_one(rows: Rows, draw: Random) -> None:
    at = draw.randrange(len(rows))
    told = [name for name in _NUMBERS if getattr(rows[at], name) is not None]
    if told:
        name = draw.choice(told)
        number = getattr(rows[at], name) + draw.choice((-1, 1))
        rows[at] = rows[at]._replace(**{name: max(0, number)})


def _not_told(rows: Rows, draw: Random) -> None:
    at = draw.randrange(len(rows))
    told = [name for name in _LOST if getattr(rows[at], name) is not None]
    if told:
        rows[at] = rows[at]._replace(**{draw.choice(told): None})


def _of_another(rows: Rows, draw: Random) -> None:
    """A row names who, or what, another one names."""
    at, name = draw.randrange(len(rows)), draw.choice(_NAMES)
    other = getattr(draw.choice(rows), name)
    if other is not None and getattr(rows[at], name) is not None:
        columns: Mapping[str, Any] = {name: other}
        if name == "client_id" and rows[at].process == rows[at].client_id:
            columns = {name: other, "process": other}
        rows[at] = rows[at]._replace(**columns)


def _at_another_time(rows: Rows, draw: Random) -> None:
    """Shortly before, at, or after a begin or an end of another row."""
    at, other = draw.randrange(len(rows)), draw.choice(rows)
    mark = draw.choice(
        (other.started_us, other.started_us if other.ended_us is None else other.ended_us)
    )
    to_us = max(0, mark + draw.choice((-MS, -1, 0, 1, MS)))
    row = rows[at]
    if row.ended_us is not None and row.seq_end != row.seq_begin and draw.random() < 0.5:
        rows[at] = row._replace(ended_us=max(row.started_us, to_us))
    else:
        rows[at] = _moved(row, to_us - row.started_us)


def _a_little_later(rows: Rows, draw: Random) -> None:
    """One row, or it and all that follow."""
    at, by_us = draw.randrange(len(rows)), draw.choice((1, MS, 2 * MS, 1000 * MS))
    until = at + 1 if draw.random() < 0.5 else len(rows)
    rows[at:until] = [_moved(row, by_us) for row in rows[at:until]]


def _at_once(rows: Rows, draw: Random) -> None:
    """Begin and end are one moment, as of what a log tells in one line."""
    at = draw.randrange(len(rows))
    row = rows[at]
    if row.seq_end is not None:
        rows[at] = row._replace(seq_end=row.seq_begin, ended_us=row.started_us)


def _something_happens(rows: Rows, draw: Random) -> None:
    """To who is in the history, some time before, in or after one of its rows."""
    row = draw.choice(rows)
    kind, to_broker = draw.choice(_HAPPENINGS)
    name = row.broker if to_broker else row.client_id
    if name is None:
        return
    last = max(each.seq_end or each.seq_begin for each in rows)
    at_us = max(0, draw.choice((row.started_us, row.ended_us or 0)) - draw.choice(_TIMES_US))
    lasts_us = draw.choice(_TIMES_US) if kind in (Kind.PAUSE, Kind.FAULT) else 0
    is_over = not lasts_us or draw.random() < 0.8
    known: dict[str, Any] = {
        "run": row.run,
        "seq_begin": last + 1,
        "seq_end": last + 1 + (lasts_us > 0) if is_over else None,
        "op_id": max(each.op_id for each in rows) + 1,
        "kind": kind,
        "level": Level.CLIENT,
        "process": name,
        "client_id": name,
        "broker": name if to_broker else None,
        "outcome": Outcome.OK if is_over else Outcome.UNKNOWN,
        "started_us": at_us,
        "ended_us": at_us + lasts_us if is_over else None,
        "clock": row.clock,
    }
    if kind in (Kind.JOIN, Kind.LEAVE):
        known |= {"group": row.group}
    elif kind is Kind.CLOCK_STEP:
        known |= {"value": draw.choice((-5000, 5000)), "broker": None}
    elif kind is Kind.FAULT:
        known |= {"detail": f"partition {row.client_id} {name}", "process": "rig", "broker": None}
    elif kind in (Kind.RESET, Kind.TRIM):
        known |= {name: getattr(row, name) for name in ("topic", "broker", "queue_id")}
        known |= {"value": max(0, (row.queue_offset or 0) + draw.choice((-1, 0, 1)))}
        known |= (
            {"group": row.group}
            if kind is Kind.RESET
            else {"level": Level.STORE, "client_id": None}
        )
    rows.append(Row(**(dict.fromkeys(Row._fields) | known)))


def _begins_late(info: RunInfo, rows: Rows, draw: Random) -> tuple[RunInfo, Rows]:
    return replace(info, begins_late=not info.begins_late), rows


def _by_two_clocks(info: RunInfo, rows: Rows, draw: Random) -> tuple[RunInfo, Rows]:
    """One of those who wrote rows has a clock of its own."""
    process, bound_us = draw.choice(rows).process if rows else None, draw.choice(_TIMES_US)
    clocks = sorted({row.clock for row in rows if row.clock is not None} | {"another"})
    info = replace(info, clock_bounds_us=dict.fromkeys(clocks, bound_us))
    return info, [row._replace(clock="another") if row.process == process else row for row in rows]


def _set_otherwise(info: RunInfo, rows: Rows, draw: Random) -> tuple[RunInfo, Rows]:
    name, values = draw.choice(_SETTINGS)
    if not hasattr(info.config, name):
        return info, rows
    return replace(info, config=replace(info.config, **{name: draw.choice(values)})), rows


def _moved(row: Row, by_us: int) -> Row:
    return row._replace(
        started_us=row.started_us + by_us,
        ended_us=None if row.ended_us is None else row.ended_us + by_us,
        wall_us=None if row.wall_us is None else row.wall_us + by_us,
    )


_TIMES_US = (1, MS, 100 * MS, 1000 * MS, 60_000 * MS)
_HAPPENINGS = (
    (Kind.CRASH, True),
    (Kind.CRASH, False),
    (Kind.PAUSE, True),
    (Kind.PAUSE, False),
    (Kind.LEAVE, False),
    (Kind.JOIN, False),
    (Kind.CLOCK_STEP, True),
    (Kind.FAULT, True),
    (Kind.RESET, False),
    (Kind.TRIM, True),
)
"""What happens, and whether to a broker."""
_SETTINGS: tuple[tuple[str, Sequence[Any]], ...] = (
    ("batch", (1, 2, 3)),
    ("max_reconsume_times", (-1, 0, 1, 2)),
    ("flush", ("async", "sync")),
    ("broker_lease_ms", (1_000, 30_000)),
    ("client_lease_ms", (500, 20_000)),
    ("persist_ms", (1, 1_000)),
    ("delay_bound_ms", (0, 500)),
    ("schedule_slack_ms", (0, 100)),
    ("threads", (1, 2)),
    ("consume_from", ("first", "last")),
    ("keep_ms", (1_000,)),
)
_OTHERWISE: tuple[Callable[[RunInfo, Rows, Random], tuple[RunInfo, Rows]], ...] = (
    _begins_late,
    _by_two_clocks,
    _set_otherwise,
)
_CHANGES: tuple[Callable[[Rows, Random], None], ...] = (
    _answered_otherwise,
    _without_end,
    _without_a_row,
    _once_more,
    _by_one,
    _not_told,
    _of_another,
    _at_another_time,
    _at_another_time,
    _a_little_later,
    _at_once,
    _something_happens,
    _something_happens,
)
