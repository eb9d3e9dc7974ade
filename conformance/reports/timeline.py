"""Events as a drawing: a line per party, time from left to right, a column per begin or end.

    12.300 s   59.900 s  60.004 s
    alice │ lock ✓ │ 17 ▶ ~~~~~~~~~~~~~~~~~~~~~~ ◀ 17 success

Rules:
- columns follow the total order of begins and ends; their distance says nothing, the times above them do;
- messages of one listener call are one operation; an operation whose begin and end are neighbours is one mark;
- what a party does at the same time lies on further lines of its own;
- a drawing wider than the paper goes on in a further panel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from specs.history.row import Row
from specs.vocabulary import Kind, Outcome

CONTEXT_KINDS = frozenset({Kind.PAUSE, Kind.CRASH, Kind.CLOCK_STEP, Kind.FAULT, Kind.LEAVE})
"""What happened around a violation and is worth drawing beside its evidence."""

_NAME_WIDTH = 16
_FILL = "~"
_GAP = 2
_SMALLEST_PANEL = 30


@dataclass(slots=True)
class _Op:
    """One operation to draw: its rows, and the columns of its begin and end."""

    rows: list[Row]
    begin: int
    end: int | None  # place in the total order; None while open
    columns: list[int] = field(default_factory=list)

    @property
    def first(self) -> Row:
        return self.rows[0]

    @property
    def instant(self) -> bool:
        return self.end == self.begin


@dataclass(frozen=True, slots=True)
class _Column:
    label: str
    time: str

    @property
    def width(self) -> int:
        return max(len(self.label), len(self.time)) + _GAP


def draw(rows: Sequence[Row], *, width: int = 100, context: Sequence[Row] = ()) -> str:
    """The drawing of `rows` (and of the `context` around them), at most `width` columns wide."""
    shown = sorted(
        {row.seq_begin: row for row in (*context, *rows)}.values(), key=lambda row: row.seq_begin
    )
    if not shown:
        return ""
    ops = _operations(shown)
    columns = _columns(
        ops, several=len({row.queue for row in rows if row.queue_id is not None}) > 1
    )
    tracks = _tracks(ops)
    name_width = min(_NAME_WIDTH, max(len(name) for name, _ in tracks))
    panels = _panels(columns, max(_SMALLEST_PANEL, width - name_width - 3))
    return "\n\n".join(_panel(columns, tracks, start, stop, name_width) for start, stop in panels)


def party(row: Row) -> str:
    """Whose line a row is on."""
    return row.client_id or row.process or row.broker or "somebody"


def _operations(rows: Sequence[Row]) -> list[_Op]:
    """Rows grouped by operation, in the order of their begins."""
    found: dict[tuple[str, int, Kind, str], _Op] = {}
    for row in rows:
        key = (row.run, row.op_id, row.kind, party(row))
        op = found.get(key)
        if op is None:
            found[key] = _Op([row], row.seq_begin, row.seq_end)
            continue
        op.rows.append(row)
        if op.end is not None:
            op.end = None if row.seq_end is None else max(op.end, row.seq_end)
    return list(found.values())


def _columns(ops: Sequence[_Op], *, several: bool) -> list[_Column]:
    """One column per mark, in the total order; each operation is told which columns are its own."""
    marks = sorted(
        [(op.begin, 0, index) for index, op in enumerate(ops)]
        + [
            (op.end, 1, index)
            for index, op in enumerate(ops)
            if op.end is not None and not op.instant
        ]
    )
    columns: list[_Column] = []
    merged: set[int] = set()
    last_time = ""
    for place, (_seq, phase, index) in enumerate(marks):
        op = ops[index]
        if phase and index in merged:
            continue
        next_mark = marks[place + 1] if place + 1 < len(marks) else None
        whole = not phase and (
            op.instant or (next_mark is not None and next_mark[1:] == (1, index))
        )
        if whole:
            merged.add(index)
            label = _whole(op)
        else:
            label = _ends(op) if phase else _begins(op)
        at_us = op.first.ended_us if phase else op.first.started_us
        time = _seconds(at_us if at_us is not None else op.first.started_us)
        op.columns.append(len(columns))
        where = _where(op.first) if several and not phase else ""
        columns.append(_Column(f"{label} {where}".rstrip(), "" if time == last_time else time))
        last_time = time
    return columns


def _tracks(ops: Sequence[_Op]) -> list[tuple[str, list[_Op]]]:
    """Lines: (party or "" for a further line of the same party, its operations, which never overlap)."""
    parties: dict[str, list[list[_Op]]] = {}
    for op in ops:
        lines = parties.setdefault(party(op.first), [])
        for line in lines:
            last = line[-1]
            if last.end is not None and last.end < op.begin and last.columns[-1] < op.columns[0]:
                line.append(op)
                break
        else:
            lines.append([op])
    return [
        (name if number == 0 else "", line)
        for name, lines in parties.items()
        for number, line in enumerate(lines)
    ]


def _panels(columns: Sequence[_Column], width: int) -> list[tuple[int, int]]:
    """Ranges of columns that fit into `width`; each holds at least one."""
    panels: list[tuple[int, int]] = []
    start, used = 0, 0
    for index, column in enumerate(columns):
        if index > start and used + column.width > width:
            panels.append((start, index))
            start, used = index, 0
        used += column.width
    return [*panels, (start, len(columns))]


def _panel(
    columns: Sequence[_Column],
    tracks: Sequence[tuple[str, list[_Op]]],
    start: int,
    stop: int,
    name_width: int,
) -> str:
    at: dict[int, int] = {}
    x = 0
    for index in range(start, stop):
        at[index] = x
        x += columns[index].width
    indent = " " * (name_width + 3)
    times = _paint(x, [(at[index], columns[index].time) for index in range(start, stop)])
    lines = [f"{indent}{times}".rstrip()]
    waiting = ""
    for name, ops in tracks:
        waiting = name or waiting  # a party whose first line is empty here is named on its next
        cells: list[tuple[int, str]] = []
        for op in ops:
            cells.extend(_fill(op, columns, at, start, stop, x))
            cells.extend(
                (at[column], columns[column].label)
                for column in op.columns
                if start <= column < stop
            )
        if any(text for _x, text in cells):
            lines.append(
                f"{_short(waiting, name_width).ljust(name_width)} │ {_paint(x, cells)}".rstrip()
            )
            waiting = ""
    return "\n".join(lines)


def _fill(
    op: _Op, columns: Sequence[_Column], at: dict[int, int], start: int, stop: int, width: int
) -> list[tuple[int, str]]:
    """The wave between an operation's begin and its end, as far as it lies in this panel."""
    first, last = op.columns[0], op.columns[-1]
    is_open = op.end is None
    if (first == last and not is_open) or first >= stop or (last < start and not is_open):
        return []
    left = at[first] + len(columns[first].label) + 1 if first >= start else 0
    right = at[last] - 1 if last < stop and not is_open and last in at else width
    return [(left, _FILL * max(0, right - left))]


def _paint(width: int, cells: Sequence[tuple[int, str]]) -> str:
    line = [" "] * width
    for x, text in cells:
        line[x : x + len(text)] = text
    return "".join(line).rstrip()


def _short(name: str, width: int) -> str:
    return name if len(name) <= width else f"{name[: width - 1]}…"


def _seconds(value_us: int) -> str:
    return f"{value_us / 1_000_000:.3f} s"


def _where(row: Row) -> str:
    return "" if row.queue_id is None else f"{row.topic}/{row.queue_id}"


# -------------------------------------------------------------------------------------------- labels

_ANSWERS = {Outcome.OK: " ✓", Outcome.REFUSED: " ✗", Outcome.UNKNOWN: " ?"}


def _offsets(op: _Op) -> str:
    offsets = [row.queue_offset for row in op.rows if row.queue_offset is not None]
    if not offsets:
        return op.first.message_id or "?"
    span = str(offsets[0]) if len(offsets) == 1 else f"{offsets[0]}–{offsets[-1]}"
    times = op.first.reconsume_times
    return f"{span} r{times}" if times else span


def _answer(row: Row) -> str:
    return _ANSWERS.get(row.outcome, "")


def _fetched(row: Row) -> str:
    return f"stored: {row.value}" if row.outcome is Outcome.OK else f"stored: none{_answer(row)}"


def _read(row: Row) -> str:
    return f"read to {row.value}" if row.queue_offset is None else f"read {row.queue_offset}"


def _sent(row: Row) -> str:
    key = f" {row.sharding_key}" if row.sharding_key else ""
    return (
        f"send{key} → {row.queue_offset}"
        if row.queue_offset is not None
        else f"send{key}{_answer(row)}"
    )


_LABELS: dict[Kind, Callable[[Row], str]] = {
    Kind.LOCK: lambda row: f"lock{_answer(row)}",
    Kind.UNLOCK: lambda row: f"unlock{_answer(row)}",
    Kind.RENEW: lambda row: f"renew{_answer(row)}",
    Kind.PROGRESS: lambda row: f"the store has {row.value}",
    Kind.COMMIT: lambda row: (
        f"commit {row.value}" + ("" if row.outcome is Outcome.OK else _answer(row))
    ),
    Kind.FETCH_OFFSET: _fetched,
    Kind.ADD: lambda row: "add" if row.value is None else f"add, start {row.value}",
    Kind.DROP: lambda _row: "drop",
    Kind.SEND: _sent,
    Kind.DEAD_LETTER: lambda row: f"dead letter {row.queue_offset}{_answer(row)}",
    Kind.READ: _read,
    Kind.PULL: lambda row: f"pull {row.queue_offset}{_answer(row)}",
    Kind.CRASH: lambda _row: "crash",
    Kind.PAUSE: lambda _row: "paused",
    Kind.FAULT: lambda row: row.detail or "fault",
    Kind.CLOCK_STEP: lambda row: f"clock steps {row.value} ms",
}


def _label(op: _Op) -> str:
    make = _LABELS.get(op.first.kind)
    return make(op.first) if make else op.first.kind.value.replace("_", " ")


def _whole(op: _Op) -> str:
    if op.first.kind is Kind.DELIVER:
        return f"{_offsets(op)} ▶◀ {op.first.outcome.value}"
    return _label(op)


def _begins(op: _Op) -> str:
    match op.first.kind:
        case Kind.DELIVER:
            return f"{_offsets(op)} ▶"
        case Kind.PAUSE | Kind.FAULT:
            return _label(op)
        case Kind.COMMIT:
            return f"commit {op.first.value}"
        case Kind.READ:
            return "read" if op.first.queue_offset is None else f"read {op.first.queue_offset}"
        case kind:
            return kind.value.replace("_", " ")


def _ends(op: _Op) -> str:
    match op.first.kind:
        case Kind.DELIVER:
            return f"◀ {_offsets(op)} {op.first.outcome.value}"
        case Kind.PAUSE:
            return "goes on"
        case Kind.FAULT:
            return "healed"
        case Kind.COMMIT:
            return _answer(op.first).strip() or op.first.outcome.value
        case _:
            return _label(op)
