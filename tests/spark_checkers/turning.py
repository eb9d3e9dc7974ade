"""Histories at which an answer turns, on either side.

A small change that is drawn (`nearby`) hardly ever meets a bound that is a sum: of when a call ended, how long it
asked to rest, and what a timer may be late. So a row is moved until a judge answers otherwise, and the last moment
before that is looked for, to the microsecond; likewise with each setting that matters.

Not a test file; the tests of this folder import it by path (`conftest.py` puts it on the path).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import replace

from judging import by_python

from inorder.evidence.laws import put_in_order
from specs.clauses.clause import Clause
from specs.history.row import Row
from specs.history.runinfo import RunInfo

MS = 1000
Rows = list[Row]
History = tuple[RunInfo, Rows]
Answer = Hashable
Moved = Callable[[int], History | None]
"""The history by so many microseconds, or by one as large, from how it is; None where there is none."""

_STEPS = (1, 5 * MS, 500 * MS, 10_000 * MS, 100_000 * MS)
"""So far a row is moved, µs. A turn between two of them is found; of several one is."""
_SET = (0, 1, 100, 5_000, 100_000, 4_000_000)
"""Likewise what a setting says, in its own unit."""
_APART = (0, 1, MS, 1_000 * MS, 30_000 * MS, 300_000 * MS)
"""Likewise by how much clocks may differ, µs."""


def turning(info: RunInfo, rows: Sequence[Row], clause: Clause) -> Iterator[History]:
    """The histories right before and right behind each turn of the clause's answer, each of them once."""
    known: set[Hashable] = set()
    for moved, steps in _dimensions(info, list(rows), clause.settings):
        for history in _turns(moved, steps, clause):
            name = (tuple(history[1]), str(history[0].config))
            if name not in known:
                known.add(name)
                yield history


# ------------------------------------------------------------------------------------------ turns


def _dimensions(
    info: RunInfo, rows: Rows, settings: Collection[str]
) -> Iterator[tuple[Moved, Sequence[int]]]:
    """What can be moved: each row, all from it on, its end; how long it asked for; each setting; clocks."""
    ways = [*(-step for step in reversed(_STEPS)), 0, *_STEPS]
    for at, row in enumerate(rows):
        yield _all_of(info, rows, at, at + 1), ways
        if at and at + 1 < len(rows):
            yield _all_of(info, rows, at, len(rows)), ways
        if row.ended_us is not None and row.seq_end != row.seq_begin:
            yield _end_of(info, rows, at), ways
        if row.suspend_ms is not None:
            yield _asked_by(info, rows, at), _SET
    for name in sorted(settings):
        if type(getattr(info.config, name, None)) is int:
            yield _set(info, rows, name), _SET
    yield _apart(info, rows), _APART


def _all_of(info: RunInfo, rows: Rows, begin: int, end: int) -> Moved:
    def moved(by_us: int) -> History | None:
        if min(row.started_us for row in rows[begin:end]) + by_us < 0:
            return None
        inner = [later(row, by_us) for row in rows[begin:end]]
        return info, put_in_order([*rows[:begin], *inner, *rows[end:]])

    return moved


def later(row: Row, by_us: int) -> Row:
    return row._replace(
        started_us=row.started_us + by_us,
        ended_us=None if row.ended_us is None else row.ended_us + by_us,
        wall_us=None if row.wall_us is None else row.wall_us + by_us,
    )


def _end_of(info: RunInfo, rows: Rows, at: int) -> Moved:
    def moved(by_us: int) -> History | None:
        row = rows[at]
        ended_us = (row.ended_us or 0) + by_us
        if ended_us < row.started_us:
            return None
        return info, put_in_order([*rows[:at], row._replace(ended_us=ended_us), *rows[at + 1 :]])

    return moved


def _asked_by(info: RunInfo, rows: Rows, at: int) -> Moved:
    return lambda ms: (info, [*rows[:at], rows[at]._replace(suspend_ms=ms), *rows[at + 1 :]])


def _set(info: RunInfo, rows: Rows, name: str) -> Moved:
    return lambda number: (replace(info, config=replace(info.config, **{name: number})), rows)


def _apart(info: RunInfo, rows: Rows) -> Moved:
    return lambda us: (replace(info, clock_bounds_us={"other": us} if us else {}), rows)


def _turns(moved: Moved, steps: Sequence[int], clause: Clause) -> Iterator[History]:
    before: tuple[int, Answer] | None = None
    for step in steps:
        history = moved(step)
        if history is None:
            before = None
            continue
        answer = _answer(history, clause)
        if before is not None and before[1] != answer:
            yield from _both_sides(moved, before, (step, answer), clause)
        before = (step, answer)


def _both_sides(
    moved: Moved, low: tuple[int, Answer], high: tuple[int, Answer], clause: Clause
) -> Iterator[History]:
    while high[0] - low[0] > 1:
        middle = (low[0] + high[0]) // 2
        history = moved(middle)
        if history is None:
            return
        answer = _answer(history, clause)
        if answer == low[1]:
            low = (middle, answer)
        else:
            high = (middle, answer)
    for step in (low[0], high[0]):
        history = moved(step)
        if history is not None:
            yield history


def _answer(history: History, clause: Clause) -> Answer:
    """What a judge finds, by which rows it is, wherever these now have their places."""
    info, rows = history
    names = {row.seq_begin: (row.op_id, row.queue_offset) for row in rows}
    opportunities, found = by_python(rows, info, (clause,))[clause.id]
    return opportunities, tuple(
        sorted(
            (str([names.get(seq) for seq in seqs]), certain, name) for seqs, certain, name in found
        )
    )
