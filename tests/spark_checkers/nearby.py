"""Histories near those of the transcripts: each is about something, and a small change leads to its other side.

Some changes are of a row, some of what happens beside it. Others make more of the history: a client goes on for a run
of uneventful calls, another group works on the same queues, a duration is as long as a bound of the configuration.

Not a test file; the tests of this folder import it by path (`conftest.py` puts it on the path).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from inorder.evidence.laws import cut_open, put_in_order
from specs.faults import cut, delay, disk_full, duplicate
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.history.telling import must_tell, untold
from specs.vocabulary import Kind, Level, Outcome, dead_letter_topic, retry_topic

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
NUMBERS = (
    "queue_offset",
    "value",
    "reconsume_times",
    "attempt",
    "key_seq",
    "suspend_ms",
    "code",
    "broker_epoch",
    "generation",
)
LOST = (
    *NUMBERS,
    "client_id",
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
_NAMES = (
    "client_id",
    "message_id",
    "queue_id",
    "group",
    "incarnation",
    "queue_offset",
    "value",
    "topic",
    "broker",
    "sharding_key",
    "origin_id",
    "lease_id",
)
Rows = list[Row]


def nearby(
    info: RunInfo, rows: Sequence[Row], draw: Random, bounds: Collection[str] = ()
) -> tuple[RunInfo, Rows]:
    """The history with one to three small changes. bounds: the settings that matter, where somebody knows."""
    changed = list(rows)
    if draw.random() < 0.3:
        for more in draw.choice(((goes_on,), (_by_another_group,), (goes_on, _by_another_group))):
            more(changed, draw)
    if draw.random() < 0.25:
        info = _at_a_bound(info, changed, draw, bounds)
    for _ in range(draw.choice((1, 1, 2, 3))):
        if changed:
            before = list(changed)
            draw.choice(_CHANGES)(changed, draw)
            if not is_possible(changed):
                changed = before
    if draw.random() < 0.1:
        info = replace(info, closed_world=not info.closed_world)
    elif draw.random() < 0.2:
        info, changed = draw.choice(_OTHERWISE)(info, changed, draw)
    return info, put_in_order(changed)


def is_possible(rows: Rows) -> bool:
    """No operation has two messages at one place, none is sent twice as the same attempt, and what must be told is: a
    run with that can't be trusted, and nothing is promised of what is said of it.
    """
    places = [
        (row.op_id, row.queue_id, row.queue_offset) for row in rows if row.queue_offset is not None
    ]
    sends = [
        (row.message_id, row.attempt or 1)
        for row in rows
        if row.kind is Kind.SEND and row.message_id is not None
    ]
    told = not any(untold(row) for row in rows)
    return told and len(set(places)) == len(places) and len(set(sends)) == len(sends)


def not_telling(row: Row, name: str) -> Row:
    """The row without what it tells by this name, unless it must tell that."""
    return row if must_tell(row, name) else row._replace(**{name: None})


def _answered_otherwise(rows: Rows, draw: Random) -> None:
    at = draw.randrange(len(rows))
    row = rows[at]
    if row.seq_end is not None:
        known = _RESULTS if row.kind is Kind.DELIVER else _ANSWERS
        rows[at] = row._replace(outcome=draw.choice(known))


def _without_end(rows: Rows, draw: Random) -> None:
    at = draw.randrange(len(rows))
    row = rows[at]
    if row.kind is Kind.READ and row.queue_offset is not None:  # what lies there was asked for
        row = row._replace(seq_end=None, ended_us=None, outcome=Outcome.UNKNOWN, message_id=None)
    rows[at] = cut_open(row)


def _without_a_row(rows: Rows, draw: Random) -> None:
    del rows[draw.randrange(len(rows))]


def _once_more(rows: Rows, draw: Random, row: Row | None = None) -> None:
    """The same again later, as another operation."""
    row = row or draw.choice(rows)
    last = _last(rows)
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
    told = [name for name in NUMBERS if getattr(rows[at], name) is not None]
    if told:
        name = draw.choice(told)
        number = getattr(rows[at], name) + draw.choice((-1, 1))
        rows[at] = rows[at]._replace(**{name: max(0, number)})


def _not_told(rows: Rows, draw: Random) -> None:
    at = draw.randrange(len(rows))
    told = [name for name in LOST if getattr(rows[at], name) is not None]
    if told:
        rows[at] = not_telling(rows[at], draw.choice(told))


def _of_another(rows: Rows, draw: Random) -> None:
    """A row names who, or what, another one names."""
    at, name = draw.randrange(len(rows)), draw.choice(_NAMES)
    other = getattr(draw.choice(rows), name)
    if other is not None and getattr(rows[at], name) is not None:
        columns: Mapping[str, Any] = {name: other}
        if name == "client_id" and rows[at].process == rows[at].client_id:
            columns = {name: other, "process": other}
        rows[at] = rows[at]._replace(**columns)


def _of_a_copy_topic(rows: Rows, draw: Random) -> None:
    """A row is about what a group is to try again, or has given up."""
    at = draw.randrange(len(rows))
    group = rows[at].group or next((row.group for row in rows if row.group is not None), "billing")
    if rows[at].topic is not None:
        topic = draw.choice((retry_topic, dead_letter_topic))(group)
        rows[at] = rows[at]._replace(topic=topic)


def _at_another_time(rows: Rows, draw: Random) -> None:
    """Shortly before, at, or after a begin or an end of another row."""
    at = draw.randrange(len(rows))
    _put(rows, at, _mark(draw.choice(rows), draw) + draw.choice((-MS, -1, 0, 1, MS)), draw)


def _mark(row: Row, draw: Random) -> int:
    """When it began or ended."""
    return draw.choice((row.started_us, row.started_us if row.ended_us is None else row.ended_us))


def _put(rows: Rows, at: int, to_us: int, draw: Random) -> None:
    """A row begins then, or ends then."""
    row, to_us = rows[at], max(0, to_us)
    if row.ended_us is not None and row.seq_end != row.seq_begin and draw.random() < 0.5:
        rows[at] = row._replace(ended_us=max(row.started_us, to_us))
    else:
        rows[at] = _moved(row, to_us - row.started_us)


def _at_a_bound(info: RunInfo, rows: Rows, draw: Random, bounds: Collection[str]) -> RunInfo:
    """A row begins or ends as long after another one as a setting says, or a hair before or after that.

    Either the row is moved there, or the setting says what the history has.
    """
    names = [name for name in bounds or _BOUNDS if _is_number(info, name)]
    if not rows or not names:
        return info
    name, at, since_us = (
        draw.choice(names),
        draw.randrange(len(rows)),
        _mark(draw.choice(rows), draw),
    )
    settings: dict[str, int] = {}
    if draw.random() < 0.5:
        settings = {each: 0 for each in _SLACKS if each != name and _is_number(info, each)}
    lasts_ms = (rows[at].started_us - since_us) // MS
    if lasts_ms > 0 and draw.random() < 0.5:
        settings[name] = lasts_ms
    info = replace(info, config=replace(info.config, **settings))
    lasts_us = getattr(info.config, name) * MS
    lasts_us += draw.choice((0, 0, info.clock_bound_us, -info.clock_bound_us))
    _put(rows, at, since_us + lasts_us + draw.choice((-MS, -1, 0, 0, 1, MS)), draw)
    return info


def _is_number(info: RunInfo, name: str) -> bool:
    return isinstance(getattr(info.config, name, None), int)


def goes_on(rows: Rows, draw: Random) -> None:
    """Whoever made a call makes more of them before it or after it, uneventful and one after another.

    What was after that time waits until they are over, or it does not.
    """
    calls = [
        row
        for row in rows
        if row.kind is Kind.DELIVER and row.queue_offset is not None and row.seq_end is not None
    ]
    if not calls:
        return
    like = draw.choice(calls)
    is_before = draw.random() < 0.3
    size, count = draw.choice((1, 1, 1, 2)), draw.choice(_RUNS)
    first = like.queue_offset - size * count if is_before else like.queue_offset + 1
    if not is_before and draw.random() < 0.3:  # it has gone back
        first -= draw.choice((1, size * count, size * count + 1))
    if first < 0:
        is_before, first = False, like.queue_offset + 1
    took_us, rest_us = draw.choice((0, 1, MS, 10 * MS)), draw.choice((0, 1, MS))
    begin_us = like.started_us if is_before else like.ended_us or like.started_us
    if is_before or draw.random() < 0.5:
        by_us = count * (took_us + rest_us) + rest_us
        rows[:] = [_moved(row, by_us) if row.started_us >= begin_us else row for row in rows]
    names = {
        row.queue_offset: row.message_id
        for row in rows
        if row.queue == like.queue and row.queue_offset is not None
    }
    is_manual = like.commit_mode == "manual" and draw.random() < 0.8
    is_even = draw.random() < 0.7
    seq, op = _last(rows), max(row.op_id for row in rows)
    for number in range(count):
        at_us = begin_us + rest_us + number * (took_us + rest_us)
        outcome = draw.choice((Outcome.SUCCESS, Outcome.COMMIT)) if is_manual else Outcome.SUCCESS
        for part in range(size):
            further = number * size + part
            offset = first + further
            mode = like.commit_mode
            if not is_even:
                outcome = draw.choice(
                    (*[Outcome.SUCCESS] * 6, *[Outcome.COMMIT] * 3, Outcome.SUSPEND)
                )
                mode = draw.choice((*[mode] * 6, None, "auto", "manual"))
            rows.append(
                like._replace(
                    op_id=op + 1 + number,
                    seq_begin=seq + 2 * size * number + part + 1,
                    seq_end=seq + 2 * size * number + size + part + 1,
                    queue_offset=offset,
                    message_id=names.get(offset) or f"{like.message_id}+{further}",
                    key_seq=None if like.key_seq is None else like.key_seq + 1 + further,
                    reconsume_times=None if like.reconsume_times is None else 0,
                    outcome=outcome,
                    commit_mode=mode,
                    suspend_ms=None,
                    code=None,
                    started_us=at_us,
                    ended_us=at_us + took_us,
                    wall_us=None
                    if like.wall_us is None
                    else like.wall_us + at_us - like.started_us,
                )
            )


def _by_another_group(rows: Rows, draw: Random) -> None:
    """What one group does on its queues another one does too: all of it or its begin, then or later, in its mode or
    in the other one."""
    groups = sorted({row.group for row in rows if row.group is not None})
    if not groups:
        return
    group = draw.choice(groups)
    other = f"{group}-too"
    topics = {name(group): name(other) for name in (retry_topic, dead_letter_topic)}
    mine = sorted(
        (row for row in rows if row.group == group), key=lambda row: (row.started_us, row.seq_begin)
    )
    if draw.random() < 0.5:
        mine = mine[: draw.randrange(1, len(mine) + 1)]
    known = {row.op_id for row in mine}
    mine = [row for row in rows if row.group == group and row.op_id in known]
    clients = {row.client_id for row in mine if row.client_id is not None}
    is_same = draw.random() < 0.3
    names = {client: client if is_same else f"{client}-too" for client in clients}
    modes = draw.choice((None, "auto", "manual"))
    by_us = draw.choice((0, 1, MS, 1000 * MS, max(row.started_us for row in rows)))
    seq, op = _last(rows), max(row.op_id for row in rows)
    for row in mine:
        copy = _moved(row, by_us)._replace(
            op_id=op + row.op_id,
            seq_begin=seq + row.seq_begin,
            seq_end=None if row.seq_end is None else seq + row.seq_end,
            group=other,
            topic=topics.get(row.topic or "", row.topic),
            client_id=names.get(row.client_id or "", row.client_id),
            process=names.get(row.process or "", row.process),
            incarnation=None if row.incarnation is None else f"{row.incarnation}-too",
        )
        if modes is not None and row.kind is Kind.DELIVER:
            copy = copy._replace(commit_mode=modes)
        rows.append(copy)


def _of_another_kind(rows: Rows, draw: Random) -> None:
    """The same client does something else there, instead or as well."""
    at = draw.randrange(len(rows))
    row = rows[at]
    for kinds in _ALIKE:
        if row.kind in kinds and row.queue_offset is None:
            if draw.random() < 0.5:
                _once_more(rows, draw, row)
                at = len(rows) - 1
            value = {} if row.value is not None else {"value": draw.choice((None, 0, 1, 17))}
            rows[at] = rows[at]._replace(kind=draw.choice(kinds), **value)


def _told_too(rows: Rows, draw: Random) -> None:
    """A number that its row did not tell, or another one of the least that there are."""
    at = draw.randrange(len(rows))
    told = [name for name in _TOLD.get(rows[at].kind, ()) if rows[at].seq_end is not None]
    if told:
        rows[at] = rows[at]._replace(**{draw.choice(told): draw.choice((0, 0, 1, 2))})


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
    """To who is in the history, some time before, in or after one of its rows; now and then twice, or two things."""
    row, happening = draw.choice(rows), draw.choice(HAPPENINGS)
    happens(rows, row, happening, draw)
    if draw.random() < 0.3:
        happens(rows, row, draw.choice((happening, draw.choice(HAPPENINGS))), draw)


def happens(
    rows: Rows, row: Row, happening: tuple[Kind, bool], draw: Random, mark_us: int | None = None
) -> None:
    """mark_us: when, or a hair before; else some time before the row."""
    kind, to_broker = happening
    name = row.broker if to_broker else row.client_id
    if draw.random() < 0.5:  # to anybody, however few rows are of it
        known = {each.broker if to_broker else each.client_id for each in rows} - {None}
        name = draw.choice(sorted(known)) if known else None
    if name is None:
        return
    last = _last(rows)
    at_us = draw.choice((row.started_us, row.ended_us or 0)) - draw.choice(_TIMES_US)
    at_us = max(0, at_us if mark_us is None else mark_us - draw.choice((0, 0, 1)))
    lasts_us = draw.choice(_TIMES_US) if kind in (Kind.PAUSE, Kind.FAULT) else 0
    is_over = not lasts_us or draw.random() < 0.8
    columns: dict[str, Any] = {
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
        columns |= {"group": draw.choice((row.group, row.group, row.group, "another", None))}
    elif kind is Kind.CLOCK_STEP:
        columns |= {"value": draw.choice((-5000, 5000)), "broker": None}
    elif kind is Kind.FAULT:
        verb, of_broker = draw.choice(_FAULTS)
        links = (f" {row.client_id} {name}", f" {row.client_id} {name} 500", f" {name}", "")
        columns |= {"detail": verb + draw.choice(links), "process": "rig"}
        columns |= {"broker": name if of_broker and to_broker else None}
    elif kind in (Kind.RESET, Kind.TRIM):
        columns |= {name: getattr(row, name) for name in ("topic", "broker", "queue_id")}
        columns |= {"value": max(0, (row.queue_offset or 0) + draw.choice((-1, 0, 1)))}
        columns |= (
            {"group": row.group}
            if kind is Kind.RESET
            else {"level": Level.STORE, "client_id": None}
        )
    rows.append(Row(**(dict.fromkeys(Row._fields) | columns)))


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


def _last(rows: Rows) -> int:
    return max(row.seq_end or row.seq_begin for row in rows)


def _moved(row: Row, by_us: int) -> Row:
    return row._replace(
        started_us=row.started_us + by_us,
        ended_us=None if row.ended_us is None else row.ended_us + by_us,
        wall_us=None if row.wall_us is None else row.wall_us + by_us,
    )


_ALIKE = (
    (
        Kind.LOCK,
        Kind.UNLOCK,
        Kind.ADD,
        Kind.DROP,
        Kind.COMMIT,
        Kind.FETCH_OFFSET,
        Kind.PERSIST,
        Kind.RESET,
    ),
    (Kind.JOIN, Kind.LEAVE, Kind.CRASH, Kind.PAUSE),
)
"""What a client does to a lane, and what becomes of a client."""
_RUNS = (2, 3, 6, 20)
"""Calls that go on."""
_BOUNDS = (
    "broker_lease_ms",
    "client_lease_ms",
    "persist_ms",
    "persist_first_ms",
    "suspend_ms",
    "continuous_ms",
    "rebalance_ms",
    "lock_interval_ms",
    "keep_ms",
    "dead_letter_bound_ms",
    "delay_bound_ms",
    "schedule_slack_ms",
    "guard_slack_ms",
)
_SLACKS = ("schedule_slack_ms", "guard_slack_ms", "delay_bound_ms")
"""What is allowed for beyond other numbers."""
_TOLD: Mapping[Kind, Sequence[str]] = {
    Kind.DELIVER: ("reconsume_times", "attempt", "key_seq", "broker_epoch"),
    Kind.SEND: ("attempt", "code", "delay_level", "key_seq", "broker_epoch"),
    Kind.DEAD_LETTER: ("attempt", "reconsume_times"),
    Kind.SEND_BACK: ("reconsume_times", "delay_level"),
    Kind.LOCK: ("code", "broker_epoch"),
    Kind.COMMIT: ("value", "broker_epoch"),
    Kind.FETCH_OFFSET: ("value", "broker_epoch"),
    Kind.ADD: ("value",),
}
_TIMES_US = (1, MS, 100 * MS, 1000 * MS, 60_000 * MS)
HAPPENINGS = (
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
_FAULTS = (
    ("partition", False),
    ("partition", False),
    (cut.VERB, False),
    (delay.VERB, False),
    (duplicate.VERB, False),
    (disk_full.VERB, True),
)
"""Verbs, and whether the row names the broker."""
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
    ("consume_from", ("first", "last", "timestamp")),
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
    _of_a_copy_topic,
    _at_another_time,
    _at_another_time,
    _a_little_later,
    _at_once,
    _told_too,
    _of_another_kind,
    _of_another_kind,
    _something_happens,
    _something_happens,
)
