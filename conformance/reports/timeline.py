"""An incident as text: a line per party, time from left to right, a column per begin or end.

    12.300 s   59.900 s  60.004 s
    alice │ lock ✓ │ 17 ▶ ~~~~~~~~~~~~~~~~~~~~~~ ◀ 17 success

What is drawn is the model's (`conformance.reports.incident`).
A drawing wider than the paper goes on in a further panel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from conformance.reports.incident import Incident, Moment, Step, Track, incident
from specs.history.row import Row

_NAME_WIDTH = 16
_FILL = "~"
_GAP = 2
_SMALLEST_PANEL = 30


@dataclass(frozen=True, slots=True)
class _Column:
    label: str
    time: str

    @property
    def width(self) -> int:
        return max(len(self.label), len(self.time)) + _GAP


def draw(rows: Sequence[Row], *, width: int = 100, context: Sequence[Row] = ()) -> str:
    """The drawing of `rows` (and of the `context` around them), at most `width` columns wide."""
    return drawing(incident(rows, context), width=width)


def drawing(what: Incident, *, width: int = 100) -> str:
    """The drawing of an incident, at most `width` columns wide."""
    if not what.moments:
        return ""
    columns = _columns(what.moments)
    name_width = min(_NAME_WIDTH, max(len(track.party) for track in what.tracks))
    panels = _panels(columns, max(_SMALLEST_PANEL, width - name_width - 3))
    drawn = [_panel(columns, what.tracks, start, stop, name_width) for start, stop in panels]
    if what.left_out:
        drawn.append(f"and {what.left_out} more faults, pauses and crashes in that time")
    return "\n\n".join(drawn)


def _columns(moments: Sequence[Moment]) -> list[_Column]:
    """What is written at each moment; a time only where it differs from the one before."""
    times = ["", *(moment.time for moment in moments)]
    return [
        _Column(moment.told, "" if moment.time == before else moment.time)
        for before, moment in zip(times, moments, strict=False)
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
    tracks: Sequence[Track],
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
    named = ""
    for track in tracks:
        cells: list[tuple[int, str]] = []
        for step in track.steps:
            cells.extend(_fill(step, columns, at, start, stop, x))
            cells.extend(
                (at[column], columns[column].label)
                for column in step.moments
                if start <= column < stop
            )
        if any(text for _x, text in cells):
            # A party whose first line is empty here is named on its next.
            name = "" if track.party == named else track.party
            lines.append(
                f"{_short(name, name_width).ljust(name_width)} │ {_paint(x, cells)}".rstrip()
            )
            named = track.party
    return "\n".join(lines)


def _fill(
    step: Step, columns: Sequence[_Column], at: dict[int, int], start: int, stop: int, width: int
) -> list[tuple[int, str]]:
    """The wave between a step's begin and its end, as far as it lies in this panel."""
    first, last = step.first, step.last
    if first == last or first >= stop or (last is not None and last < start):
        return []
    left = at[first] + len(columns[first].label) + 1 if first >= start else 0
    right = at[last] - 1 if last is not None and last < stop else width
    return [(left, _FILL * max(0, right - left))]


def _paint(width: int, cells: Sequence[tuple[int, str]]) -> str:
    line = [" "] * width
    for x, text in cells:
        line[x : x + len(text)] = text
    return "".join(line).rstrip()


def _short(name: str, width: int) -> str:
    return name if len(name) <= width else f"{name[: width - 1]}…"
